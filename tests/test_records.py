"""Records hold the fields of their class, compare by value, and are immutable."""

from functools import cached_property

import pytest

from generator.records import Record, record, replace, values


@record
class Plug:
    """Where a cable ends."""

    port: int
    label: str = "none"

    @cached_property
    def title(self) -> list[str]:
        return [f"p{self.port} {self.label}"]


@record
class Slot:
    port: int
    label: str = "none"


def test_names_are_parameters_and_defaults_may_be_left_out() -> None:
    assert values(Plug(1, "left")) == {"port": 1, "label": "left"}
    assert values(Plug(label="left", port=1)) == {"port": 1, "label": "left"}
    assert values(Plug(0)) == {"port": 0, "label": "none"}


@pytest.mark.parametrize(
    ("positional", "named"),
    [
        ((), {}),
        ((1, "left", 2), {}),
        ((1,), {"port": 1, "label": "left"}),
        ((1,), {"colour": "red"}),
    ],
)
def test_unknown_names_are_refused(
    positional: tuple[object, ...], named: dict[str, object]
) -> None:
    with pytest.raises(TypeError, match="Plug takes port, label"):
        Plug(*positional, **named)  # type: ignore[arg-type]


def test_records_are_equal_if_their_class_and_values_are() -> None:
    assert Plug(1) == Plug(1, "none")
    assert Plug(1) != Plug(0)
    others: list[object] = [Slot(1), 1]
    assert Plug(1) not in others
    assert {Plug(1): "here"}[Plug(1)] == "here"


def test_a_record_cannot_be_changed() -> None:
    plug = Plug(1)
    with pytest.raises(AttributeError):
        plug.port = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        plug.colour = "red"  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        del plug.port
    assert replace(plug, port=2) == Plug(2)
    assert plug == Plug(1)


def test_a_record_prints_as_it_is_written() -> None:
    assert repr(Plug(1, "left")) == "Plug(port=1, label='left')"


def test_a_computed_value_is_computed_once() -> None:
    plug = Plug(1)
    assert plug.title is plug.title
    assert not hasattr(Slot(1), "__dict__")
    assert isinstance(plug, Record)


def test_a_record_takes_apart_in_order() -> None:
    match Plug(1, "left"):
        case Plug(port, label):
            assert (port, label) == (1, "left")


class Opening:
    """A base without fields."""

    __slots__ = ()

    def title(self) -> str:
        return type(self).__name__


@record
class Vent(Opening):
    """A record that holds nothing."""


def test_a_base_without_fields_is_kept() -> None:
    assert Vent() == Vent()
    assert hash(Vent()) == hash(Vent())
    assert isinstance(Vent(), Opening)
    assert (Vent().title(), values(Vent())) == ("Vent", {})


@record
class Duct(Vent):
    """A record that extends one without fields."""

    width: int = 1


@record
class Socket:
    port: int
    label: str = "none"

    @cached_property
    def title(self) -> list[str]:
        return [f"p{self.port} {self.label}"]


@record
class Cage(Socket):
    """A record with more fields, and another type for one of them."""

    label: str
    lanes: int = 4


def test_a_record_may_extend_another_one() -> None:
    sockets = [Socket(number) for number in range(1000)]
    cage = Cage(1, "left")
    assert values(cage) == {"port": 1, "label": "left", "lanes": 4}
    assert cage.title == ["p1 left"]
    assert cage != Socket(1, "left")
    assert isinstance(cage, Socket)
    assert replace(cage, lanes=8) == Cage(label="left", port=1, lanes=8)
    assert (sockets[999].port, Duct(2).width, Duct().title()) == (999, 2, "Duct")
    with pytest.raises(AttributeError):
        cage.lanes = 2  # type: ignore[misc]


@record
class Pin:
    number: int
    label: str = "none"


def test_a_class_with_many_instances_takes_what_it_took_before() -> None:
    before = Pin.__init__
    pins = [Pin(number) for number in range(1000)]
    assert Pin.__init__ is not before
    assert pins[999] == Pin(999) == Pin(label="none", number=999)
    assert values(Pin(1, label="left")) == {"number": 1, "label": "left"}
    with pytest.raises(TypeError):
        Pin(1, colour="red")  # type: ignore[call-arg]


@record
class Mark:
    """A record without fields."""


def test_a_class_with_many_instances_may_have_no_fields() -> None:
    before = Mark.__init__
    assert {Mark() for _ in range(1000)} == {Mark()}
    assert Mark.__init__ is not before
