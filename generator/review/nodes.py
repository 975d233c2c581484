"""What a change does to one node."""

from typing import Literal

from generator.activation import Scope
from generator.records import record
from generator.review.changes import FileChange

State = Literal["new", "changed", "unchanged", "renamed", "removed"]

_TITLES = {
    Scope.NOTHING: "nothing",
    Scope.FILES: "files only, nothing restarts",
    Scope.RELOAD: "systemctl daemon-reload only",
    Scope.SERVICE: "restart of a service beside the engine",
}
_SERVICES = {
    frozenset({"added"}): "a service beside the engine starts",
    frozenset({"removed"}): "a service beside the engine stops",
}
_LINKS, _UNPLUGGED = "netplan apply (links drop)", "another cable (links drop)"
_ENGINE = {
    (True, True): "engine restart",
    (False, True): "engine start",
    (True, False): "engine stop",
}


@record
class NodeReview:
    """What changes on one node.

    `was` is its previous name. In the plan, an engine `stops` and `starts` there. `is_unplugged`
    means that a cable is unplugged there, which takes its links down whatever its files say.
    """

    name: str
    was: str
    state: State
    effect: Scope
    files: tuple[FileChange, ...]
    stops: bool = False
    starts: bool = False
    is_unplugged: bool = False

    @property
    def _services(self) -> frozenset[str]:
        """The kinds of change to services' files, if nothing else matters."""
        if self.effect is not Scope.SERVICE:
            return frozenset()
        own = (file for file in self.files if file.activation.effect is Scope.SERVICE)
        return frozenset(file.kind for file in own)

    @property
    def title(self) -> str:
        """What must be done, in a few words."""
        if self.state == "new":
            return f"new: install all{', start the engine' if self.starts else ''}"
        if self.state == "removed":
            return f"removed: {'stop the engine, ' if self.stops else ''}remove the files"
        before = f"called {self.was} until now: " if self.state == "renamed" else ""
        return before + self._done

    @property
    def _done(self) -> str:
        engine = _ENGINE.get((self.stops, self.starts), "")
        if self.effect is Scope.LINKS or self.is_unplugged:
            links = _LINKS if self.effect is Scope.LINKS else _UNPLUGGED
            return f"{links}, {engine}" if engine else links
        if engine:
            is_with_others = self.stops and self.starts and self.effect is not Scope.RESTART
            return f"{engine}{', with the other ranks' if is_with_others else ''}"
        return _SERVICES.get(self._services, _TITLES[self.effect])
