"""The ranks of a site that can be asked, with what is known about the present settings of each."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256

from generator.answers.answer import REFUSED, REHEARSAL, UNASKED, Answer
from generator.bundle.tree import Tree
from generator.fit.assessment import NodeMemory
from generator.records import record, replace
from generator.site import Member, Part, Site
from generator.sitefile.lock import Lock, LockedAnswer

_OPTIONS = "/opt/sparkgen/options.yaml"


def checksum(part: Part, member: Member, tree: Tree) -> str:
    """The checksum of what a node is asked about, as launch.sh makes it."""
    words = (member.container.entrypoint, *(w for ws in member.container.command for w in ws))
    paths = [*member.container.env_files, part.place(_OPTIONS)]
    files = [tree[path] for each in paths if (path := f"{member.name}{each}") in tree]
    lines = (line for file in files for line in file.text.splitlines(keepends=True))
    text = "".join(f"{word}\0" for word in words) + "".join(x for x in lines if x[0] != "#")
    return sha256(text.encode()).hexdigest()


@record
class AskedRank:
    """A rank of a site, with its present settings and the answer to them, if there is one."""

    part: Part
    member: Member
    settings: str
    answer: Answer | None
    locked: LockedAnswer | None

    @property
    def name(self) -> str:
        """The node, with its group."""
        return f"{self.member.name} ({self.part.group})" if self.part.group else self.member.name

    @property
    def status(self) -> str:
        """What is known about its present settings; empty if they were not asked about."""
        said, before = self.answer, self.locked
        if said is None:
            return before.status if before else ""
        if before is None or not said.is_rehearsal:
            return said.status
        # One that was not possible changes nothing, and none takes back another refusal.
        is_refused = before.status == REFUSED and before.rehearsal != REFUSED
        return before.status if is_refused or said.status == UNASKED else said.status

    @property
    def kept(self) -> LockedAnswer | None:
        """What a lock keeps of it."""
        if self.answer is None:
            return self.locked
        group, node, said, before = self.part.group, self.member.name, self.answer, self.locked
        size = said.figure("parameter_bytes")
        weights = str(size) if isinstance(size, int) and size > 0 else ""
        rehearsal = said.rehearsal
        if before:
            weights = weights or before.weights
            rehearsal = before.rehearsal if rehearsal in ("", UNASKED) else rehearsal
        now = (said.image, self.settings, self.status)
        return LockedAnswer(group, node, *now, weights, rehearsal)

    @property
    def memory(self) -> NodeMemory | None:
        """What was computed about its memory."""
        nodes = self.part.memory.nodes if self.part.memory else ()
        return next((each for each in nodes if each.node == self.member.name), None)


def ranks(
    site: Site, tree: Tree, answers: Sequence[Answer], locked: Sequence[LockedAnswer]
) -> list[AskedRank]:
    """All ranks that can be asked, each with the last answer to its present settings."""
    made = []
    for part in site.parts:
        for member in () if part.engine.is_in_pyxis else part.nodes:
            now = (part.group, member.name, checksum(part, member, tree))
            image = member.container.image
            said = [a for a in answers if (a.group, a.node, a.settings) == now]
            kept = [k for k in locked if (k.group, k.node, k.settings) == now]
            last = _together([a for a in said if _is_same(a.image, image)])
            before = next((k for k in kept if _is_same(k.image, image)), None)
            made.append(AskedRank(part, member, now[-1], last, before))
    return made


def _together(said: Sequence[Answer]) -> Answer | None:
    """The last answer, with the last rehearsal's."""
    rehearsed = next((each for each in reversed(said) if each.is_rehearsal), None)
    asked = next((each for each in reversed(said) if not each.is_rehearsal), None)
    if not asked or not rehearsed:
        return asked or rehearsed
    own = (stage for stage in rehearsed.stages if stage.name == REHEARSAL)
    return replace(asked, stages=(*asked.stages, *own))


def of_lock(site: Site, sha256: str, lock: Lock | None) -> list[AskedRank]:
    """All ranks, each with what a lock has of it; none if the lock has no answers at all."""
    from generator.bundle.render import render

    return ranks(site, render(site, sha256), (), lock.answers) if lock and lock.answers else []


def weights(known: Iterable[AskedRank], group: str) -> Mapping[str, int]:
    """The bytes of parameters on a group's nodes, where the engine said how many."""
    kept = ((rank.member.name, rank.kept) for rank in known if rank.part.group == group)
    return {node: int(each.weights) for node, each in kept if each and each.weights}


def _is_same(said: str, now: str) -> bool:
    """Whether an answer is of an image; a digest counts where both have one."""
    (name, _, digest), (other, _, pinned) = said.partition("@"), now.partition("@")
    return name == other and (digest == pinned or not digest or not pinned)


def to_lock(known: Iterable[AskedRank]) -> tuple[LockedAnswer, ...]:
    """What a lock keeps of the answers."""
    return tuple(kept for rank in known if (kept := rank.kept))
