"""What a change does to one node."""

from typing import Literal

from generator.activation import Effect
from generator.records import record
from generator.review.changes import FileChange

State = Literal["new", "changed", "unchanged", "renamed", "removed"]

TITLES = {
    Effect.NOTHING: "nothing",
    Effect.FILES: "files only, nothing restarts",
    Effect.RELOAD: "systemctl daemon-reload only",
    Effect.SERVICE: "restart of a service beside the engine",
    Effect.RESTART: "engine restart",
    Effect.LINKS: "netplan apply (links drop), engine restart",
}
_SERVICES = {
    frozenset({"added"}): "a service beside the engine starts",
    frozenset({"removed"}): "a service beside the engine stops",
}
NEW = "new: install all, start the engine"
REMOVED = "removed: stop the engine, take the files off"
UNPLUGGED = "another cable (links drop), engine restart"
WITH_THE_OTHERS = "engine restart, with the other ranks"


@record
class NodeReview:
    """What changes on one node; `steps` are done there once its folder has been copied.

    `was` is its previous name. `is_unplugged` means that a cable is unplugged there, which takes
    its links down whatever its files say.
    """

    name: str
    was: str
    state: State
    effect: Effect
    files: tuple[FileChange, ...]
    steps: tuple[str, ...]
    restarts: bool
    is_unplugged: bool = False

    @property
    def _services(self) -> frozenset[str]:
        """The kinds of change to services' files, if nothing else matters."""
        if self.effect is not Effect.SERVICE:
            return frozenset()
        own = (file for file in self.files if file.activation.effect is Effect.SERVICE)
        return frozenset(file.kind for file in own)

    @property
    def title(self) -> str:
        """What must be done, in a few words."""
        if self.state in ("new", "removed"):
            return NEW if self.state == "new" else REMOVED
        if self.restarts and self.effect < Effect.RESTART:
            done = UNPLUGGED if self.is_unplugged else WITH_THE_OTHERS
        else:
            done = _SERVICES.get(self._services, TITLES[self.effect])
        return f"called {self.was} until now: {done}" if self.state == "renamed" else done
