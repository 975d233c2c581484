"""The order in which the workers of pytest-xdist run the tests."""

import random
from collections import defaultdict
from collections.abc import Sequence

import pytest


def mixed(items: Sequence[pytest.Item], workers: int) -> list[pytest.Item]:
    """Put long tests first for each worker, and shuffle the others, the same way in every run.

    A worker starts with an equal share of the list and then takes over what others have left. In
    file order, all workers would wait for simulated networks at one time and compete for the
    processors at another, and at the end one would run a long test while the others are idle.
    """
    groups: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        groups[_group(item)].append(item)
    long, others = [], []
    for tests in groups.values():
        if len(tests) > 1 or tests[0].get_closest_marker("long"):
            long.append(tests)
        else:
            others += tests
    random.Random(0).shuffle(others)

    order: list[pytest.Item] = []
    for worker in range(workers):
        share = (len(items) - len(order)) // (workers - worker)
        first = [test for tests in long[worker::workers] for test in tests]
        rest = max(share - len(first), 0)
        order += first + others[:rest]
        del others[:rest]
    return order


def _group(item: pytest.Item) -> str:
    """The name of a test's group: tests that share a module's fixture stay together."""
    return item.path.name if _shares_a_fixture(item) else item.nodeid


def _shares_a_fixture(item: pytest.Item) -> bool:
    assert isinstance(item, pytest.Function)
    module, _, _ = item.nodeid.partition("::")
    definitions = [
        definition for all_ in item._fixtureinfo.name2fixturedefs.values() for definition in all_
    ]
    return any(
        definition.baseid == module and definition.scope != "function" for definition in definitions
    )
