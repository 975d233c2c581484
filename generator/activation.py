"""How a changed file is applied on its node, and how much of the node that affects."""

from enum import IntEnum

from generator.records import record


class Scope(IntEnum):
    """How much of a node is affected; each level includes the ones below it."""

    NOTHING = 0
    FILES = 1
    RELOAD = 2
    SERVICE = 3
    RESTART = 4
    LINKS = 5


@record
class Activation:
    """What has to be done on the node when a file changes, as the manifest lists it.

    `step` is what remains to be done once install.sh has run, `first` the same for a new file, and
    `gone` for one that was removed; `before` is done ahead of an installation that removes the
    file. They are empty if nothing has to be done. `unit` is the service beside the engine that
    reads the file.
    """

    text: str
    effect: Scope
    step: str = ""
    first: str = ""
    gone: str = ""
    before: str = ""
    unit: str = ""


NOTHING = Activation("nothing", Scope.FILES)
HOSTS = Activation("merge into /etc/hosts", Scope.FILES)
LOGIN = Activation("next login", Scope.FILES)
SYSCTL = Activation("sysctl --system", Scope.FILES)
NETPLAN = Activation("netplan apply, links drop; then restart the engine", Scope.LINKS)
RESTART = Activation("restart the engine", Scope.RESTART)
# The running engine is left alone: changes to its unit take effect at its next start.
UNIT = Activation("systemctl daemon-reload; counts from the next start", Scope.RELOAD)
DROP_IN = Activation("systemctl daemon-reload", Scope.RELOAD)


def service_restart(unit: str, title: str) -> Activation:
    """Restart a unit other than the engine's, which people know as `title`."""
    return Activation(
        f"systemctl daemon-reload, then restart {title}",
        Scope.SERVICE,
        step=f"systemctl restart {unit}",
        first=f"systemctl start {unit}",
        unit=unit,
    )


KV_CACHE = service_restart("sparkgen-kv-cache", "what bounds the KV cache on disk")
ROUTES = service_restart("sparkgen-routes", "forwarding")
