"""What applies a changed file on its node, and how much of the node notices."""

from enum import IntEnum

from generator.records import record


class Effect(IntEnum):
    """How much a node notices, from nothing to all; a greater one has the lesser ones in it."""

    NOTHING = 0
    FILES = 1
    RELOAD = 2
    SERVICE = 3
    RESTART = 4
    LINKS = 5


@record
class Activation:
    """What a change of a file needs on the node, as the manifest says it.

    `step` is what is left to do there once install.sh is through, `first` the same where the file
    is new, and `gone` where it is no more; `before` is done ahead of an installation that removes
    it. All are empty where nothing is to do. `notice` is what clients meet meanwhile.
    """

    text: str
    effect: Effect
    step: str = ""
    first: str = ""
    gone: str = ""
    before: str = ""
    notice: str = ""


NOTHING = Activation("nothing", Effect.FILES)
HOSTS = Activation("merge into /etc/hosts", Effect.FILES)
LOGIN = Activation("next login", Effect.FILES)
SYSCTL = Activation("sysctl --system", Effect.FILES)
NETPLAN = Activation("netplan apply, links drop; then restart the engine", Effect.LINKS)
RESTART = Activation("restart the engine", Effect.RESTART)
# The engine that runs is left alone: what a unit says counts from its next start.
UNIT = Activation("systemctl daemon-reload; counts from the next start", Effect.RELOAD)
DROP_IN = Activation("systemctl daemon-reload", Effect.RELOAD)


def service_restart(unit: str, title: str, notice: str = "") -> Activation:
    """The restart of a unit beside the engine, which people call `title`."""
    return Activation(
        f"systemctl daemon-reload, then restart {title}",
        Effect.SERVICE,
        step=f"systemctl restart {unit}",
        first=f"systemctl start {unit}",
        notice=notice,
    )


KV_CACHE = service_restart("sparkgen-kv-cache", "what bounds the KV cache on disk")
ROUTES = service_restart("sparkgen-routes", "forwarding")
