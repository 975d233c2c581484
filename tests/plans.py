"""Plans for random changes of random sites, each carried out in the model and taken apart.

    python tests/plans.py [--count 5000] [--seed 0]    random edits, one after the other
    python tests/plans.py --pairs                      from each golden site to each other one

Run from the root of a checkout, with PYTHONPATH=.:tests. Every plan must reach its end, and fail
without any of its steps.
"""

import argparse
import copy
import json
import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, permutations
from typing import Any

from random_sites import random_site, served

from generator.bundle.committed import Committed
from generator.bundle.render import render
from generator.bundle.tree import Tree
from generator.operation.actions import Action
from generator.operation.answers import View, successors
from generator.operation.needed import Change, needed
from generator.operation.outcome import Outcome, outcome
from generator.operation.plan import Moment, PlanError, plan, unreached
from generator.operation.state import Cluster, LiveEngine
from generator.pipeline import read_site
from generator.records import record
from generator.resources import ROOT
from generator.review.impact import Before, change_of
from generator.site import Site
from generator.sitefile.beside import ReadBeside, nothing_beside
from generator.sitefile.disk import beside


@record
class Built:
    """A site and its bundle."""

    site: Site
    tree: Tree

    @property
    def before(self) -> Before:
        """The bundle as something to compare with, whose site is not known."""
        cables = tuple((str(cable.a), str(cable.b)) for cable in self.site.cables)
        nodes = tuple(node.name for node in self.site.nodes)
        return Before("before", self.site.name, Committed(self.tree, nodes, cables))


@record
class Plan:
    """A change, the plan for it, and what it means to people."""

    change: Change
    moments: list[Moment]
    outcome: Outcome


def built(text: str, files: ReadBeside = nothing_beside) -> Built | None:
    """A site file with its bundle; None if the site has errors."""
    site = read_site("site.yaml", text.encode(), files).site
    return Built(site, render(site, "")) if site else None


def planned(before: Built, after: Built) -> Plan:
    """The plan from one to the other."""
    change = change_of(after.site, after.tree, before.before)
    moments = plan(change)
    return Plan(change, moments, outcome(change, moments))


def faults(found: Plan) -> Iterator[str]:
    """Steps that a plan could leave out, and what people are told that is not so."""
    steps = steps_of(found)
    for index, step in enumerate(steps):
        left = [*steps[:index], *steps[index + 1 :]]
        if not is_refused(found.change, left) and not _ends_by_itself(step, left[index:]):
            yield f"not needed: {step[0].title}: {step[0].node}"
    for sooner, later in ORDERED:
        if pair := _pair(steps, sooner, later):
            one, other = pair
            left = [*steps[:one], steps[other], *steps[one + 1 : other], steps[one]]
            if not is_refused(found.change, [*left, *steps[other + 1 :]]):
                yield f"swapped: {steps[one][0].title} and {steps[other][0].title}"
    yield from _shared_addresses(found)
    told = {outage.name for outage in found.outcome.outages} | {*found.outcome.lost}
    called = dict(successors(found.change))
    for name in {name for step in found.outcome.steps for name in step.down}:
        if name not in told and called.get(name) not in told:
            yield f"nobody is told that {name} is not answered"
    now = found.moments[-1].after if found.moments else found.change.now
    for name, answers in View(found.change).answers(now).items():
        urls = {door.url for door in found.change.after.doors if name in door.names}
        active = [e for e in found.change.after.engines if e.is_active and name in e.names]
        if active and urls and not answers:
            yield f"{name} is told to be at {urls}, where nothing answers"


def _shared_addresses(found: Plan) -> Iterator[str]:
    for moment in found.moments:
        known = moment.after.nodes.items()
        had = found.change.before.folders
        held = [n.address for name, n in known if n.address and (n.installed or name not in had)]
        if len({*held}) < len(held):
            yield f"two nodes have one address: {moment.action.title}: {moment.action.node}"


# Of these, on the same node, the second one never comes first.
ORDERED = (
    ("copy the folder", "install.sh"),
    ("stop the engine", "shut the node down"),
    ("shut the node down", "start the node again"),
    ("check the fabric", "see that each plugged port"),
    ("start the engine", "wait until"),
    ("/opt/sparkgen/proxy.sh drain", "stop the engine"),
)


def _pair(steps: Sequence[Sequence[Action]], sooner: str, later: str) -> tuple[int, int] | None:
    """The first two such steps with a node in common, or about the same engine."""
    first = [i for i, step in enumerate(steps) if step[0].title.startswith(sooner)]
    second = [i for i, step in enumerate(steps) if step[0].title.startswith(later)]
    pairs = ((one, other) for one in first for other in second if one < other)
    return next((p for p in pairs if _about(steps[p[0]]) & _about(steps[p[1]])), None)


def _about(step: Sequence[Action]) -> set[str]:
    """The nodes of a step; for a drain and what it is for, the engine."""
    title = step[0].title
    if found := re.search(r"proxy\.sh drain (\S+)", title):
        return {f"engine {found[1]}"}
    found = re.match(r"stop the engine of ([\w-]+)", title)
    own = {f"engine {found[1]}"} if found else set()
    return own | {node for each in step for node in each.nodes or (each.node,) if node}


def delays(found: Plan) -> Iterator[str]:
    """Names that are told to be down for longer than they need be, and steps at the wrong time."""
    for name, told in down(found).items():
        least = _least(found.change, name)
        if not least:
            continue
        rivalry = _rivalry(found.change, name)
        is_longer = told.seconds > least.seconds + SLACK + rivalry
        if is_longer or (told.by_hand > least.by_hand and not rivalry):
            yield f"down for longer than it need be: {name}: {told}, {least}"
    steps = steps_of(found)
    price = _price(found)
    for outage in found.outcome.outages:
        first, last = outage.first - 1, outage.last - 1
        own = range(first, last + 1)
        moves = [*((at, first) for at in own), *((at, last) for at in own)]
        moves += [(first, at) for at in own]
        for at, to in dict.fromkeys(moves):
            left = [*steps[:at], *steps[at + 1 :]]
            moved = [*left[:to], steps[at], *left[to:]]
            done = at != to and _done(found.change, [each for step in moved for each in step])
            if done and _price(done) < price - SLACK:
                yield f"at another time: {steps[at][0].title}: step {at + 1} as step {to + 1}"


# What people do is taken to last longer than what has a limit.
BY_HAND_SECONDS = 3600
# Others that restart at the same time may be stopped one after the other.
SLACK = 240


@record
class Down:
    """How long nobody answers to a name: for so many seconds, and as long as so many steps take."""

    seconds: int = 0
    by_hand: int = 0


def down(found: Plan) -> dict[str, Down]:
    """How long each name is told not to be answered, without what is done for others meanwhile.

    These stop one after the other, take a minute on their nodes, and get their secrets at once.
    """
    times: dict[str, Down] = {}
    for each in found.outcome.outages:
        all_steps = found.outcome.steps[each.first - 1 : each.last]
        steps = [step for step in all_steps if {each.name, each.was}.isdisjoint(step.loading)]
        engines = [e for e in found.change.stopping if each.name in _names(found, e)]
        own = {_stop_of(engine) for engine in engines}
        new = [e for e in found.change.active if each.name in e.names]
        nodes = {node for engine in (*engines, *new) for node in engine.nodes}
        nodes |= {door.node for door in found.change.after.doors if door.units}
        others = [
            step
            for step in steps
            if (step.text.startswith(STOPS) and step.text not in own)
            or (step.seconds == 60 and step.nodes and nodes.isdisjoint(step.nodes))
        ]
        by_hand = {_kind(s.text) for s in steps if s.seconds is None}
        was = times.get(each.name, Down())
        seconds = each.seconds - sum(step.seconds or 0 for step in others)
        times[each.name] = Down(was.seconds + seconds, was.by_hand + len(by_hand - {""}))
    return times


def _rivalry(change: Change, name: str) -> int:
    """How long others stop and load that trade nodes or names with what answers to a name.

    One of them has to wait for the others, or all of them at once.
    """
    before = [engine for engine in change.before.engines if engine.is_active]
    waits: dict[str, set[str]] = {}
    for engine in change.active:
        left = [each for each in before if {*each.nodes} & {*engine.nodes}]
        names = {name for each in left for name in each.names}
        waits[engine.group] = {each.group for each in left} | {
            other.group for other in change.active if names & {*other.names}
        }
    for _ in waits:
        for group, others in waits.items():
            waits[group] = others.union(*(waits.get(other, ()) for other in others))
    new = {e.group for e in change.active if name in e.names}
    old = {e.group for e in change.stopping if name in e.names}
    own = new | old
    rivals = {g for group in own for g in waits.get(group, ()) if group in waits.get(g, ())}
    is_traded = rivals - own or (old and new and old.isdisjoint(new))
    engines = [e for e in change.active if is_traded and e.group in rivals | own]
    return sum(SLACK + e.stop_seconds + e.load_seconds for e in engines)


def _kind(title: str) -> str:
    """What people do, once for several cables; empty if they write something at once."""
    return "" if title.startswith(WRITES) else title.split()[0]


STOPS, WRITES = ("stop the engine", "scancel"), ("write ", "create a key")


def _stop_of(engine: LiveEngine) -> str:
    of = f" of {engine.group}" if engine.group else ""
    order = ", the head first" if len(engine.nodes) > 1 else ""
    return f"scancel --name={engine.job[0]}" if engine.job else f"stop the engine{of}{order}"


def _names(found: Plan, engine: LiveEngine) -> set[str]:
    called = View(found.change).successors
    return {called.get(name, name) for name in engine.names}


def _price(found: Plan) -> int:
    return sum(each.seconds + BY_HAND_SECONDS * len(each.by_hand) for each in found.outcome.outages)


def _done(change: Change, actions: Iterable[Action]) -> Plan | None:
    """The plan of these actions, one after the other; None if the model refuses them."""
    now, moments = change.now, list[Moment]()
    for action in actions:
        if action.unmet(now):
            return None
        moments.append(Moment(action, now, action.during(now), action.done(now)))
        now = moments[-1].after
    return None if unreached(now, change.after) else Plan(change, moments, outcome(change, moments))


def _least(change: Change, name: str) -> Down | None:
    """How long nobody has to answer to a name, whatever becomes of others.

    All that can be done while it is answered is done first; then as little as makes something
    answer to it again, and so on.
    """
    found = [_least_in(change, name, order) for order in (needed(change), needed(change)[::-1])]
    known = [each for each in found if each]
    return min(known, key=lambda each: (each.by_hand, each.seconds), default=None)


def _least_in(change: Change, name: str, order: Sequence[Action]) -> Down | None:
    view, now, left = View(change), change.now, list(order)
    was = [
        old for old, new in view.successors.items() if new == name and name not in view.answers(now)
    ]
    name = was[0] if was else name

    def is_answered(now: Cluster) -> bool:
        return bool(view.answers(now, [name])[name])

    seconds = by_hand = 0
    while left:
        now, left, _ = _closure(
            now, left, lambda a, n: is_answered(a.during(n)) and is_answered(a.done(n))
        )
        if not left or not unreached(now, change.after):
            break
        start = now
        blips = [
            a
            for a in left
            if not a.unmet(now) and not a.has_nothing_to_do(now) and is_answered(a.done(now))
        ]
        if blips:
            action = min(blips, key=lambda a: a.seconds or BY_HAND_SECONDS)
            left.remove(action)
            now, chosen = action.done(now), [action]
        else:
            chosen = _back(now, left, is_answered)
            if not chosen:
                return None
            for action in chosen:
                now = action.done(now)
                left.remove(action)
        del start
        worst: dict[str, int | None] = {}
        for action in chosen:
            had = worst.get(action.title, 0)
            worst[action.title] = (
                None if None in (had, action.seconds) else max(had or 0, action.seconds or 0)
            )
        seconds += sum(each or 0 for each in worst.values())
        by_hand += len({_kind(title) for title, each in worst.items() if each is None} - {""})
    return Down(seconds, by_hand)


Allowed = Callable[[Action, Cluster], bool]


def _closure(
    now: Cluster,
    left: Sequence[Action],
    allowed: Allowed,
    until: Callable[[Cluster], bool] | None = None,
) -> tuple[Cluster, list[Action], list[Action]]:
    """What can be done one after the other, in any order, as far as it is allowed."""
    rest, taken, is_more = list(left), list[Action](), True
    while is_more:
        is_more = False
        for action in list(rest):
            if until and taken and until(now):
                return now, rest, taken
            if action.has_nothing_to_do(now) or action.unmet(now) or not allowed(action, now):
                continue
            now, is_more = action.done(now), True
            rest.remove(action)
            taken.append(action)
    return now, rest, taken


def _back(now: Cluster, left: Sequence[Action], is_back: Callable[[Cluster], bool]) -> list[Action]:
    """The least that has to be done before something answers again."""
    end, _, taken = _closure(now, left, lambda a, n: True)
    if not is_back(end):
        return []
    is_out = False
    chosen = list(taken)
    for action in reversed(taken):
        without = [each for each in chosen if each is not action]
        try:
            if is_back(carried_out(now, without)):
                chosen = without
        except PlanError:
            pass
    del is_out
    return chosen


def _ends_by_itself(step: Sequence[Action], later: Sequence[Sequence[Action]]) -> bool:
    """Whether it only ends sooner what a later start of the proxy ends anyway."""
    titles = {each[0].title for each in later}
    return "proxy.sh undrain" in step[0].title and any("sparkgen-proxy" in t for t in titles)


def steps_of(found: Plan) -> list[list[Action]]:
    """The actions that people are told as one step."""
    actions = (moment.action for moment in found.moments)
    return [list(own) for _, own in groupby(actions, lambda action: action.title)]


def swaps(found: Plan) -> tuple[int, int]:
    """How many pairs of neighbouring steps the model takes in the other order too, and refuses."""
    steps = steps_of(found)
    refused = [
        is_refused(found.change, [*steps[:i], steps[i + 1], steps[i], *steps[i + 2 :]])
        for i in range(len(steps) - 1)
    ]
    return refused.count(False), refused.count(True)


def carried_out(now: Cluster, actions: Iterable[Action]) -> Cluster:
    """The cluster once these were done one after the other; raises PlanError."""
    for action in actions:
        if reason := action.unmet(now):
            raise PlanError(f"{action.title}: {action.node}: {reason}")
        now = action.done(now)
    return now


def is_refused(change: Change, steps: Sequence[Sequence[Action]], *, is_end: bool = True) -> bool:
    """Whether the model refuses steps, or does not get to where the change leads."""
    try:
        now = carried_out(change.now, (action for step in steps for action in step))
    except PlanError:
        return True
    return is_end and bool(unreached(now, change.after))


# Random edits of a site, as a site file has it.

Data = dict[str, Any]
Edit = Callable[[Data, random.Random], None]


def edited(data: Data, rng: random.Random) -> tuple[str, Data]:
    """A site after one to three random edits, and what they are called."""
    after = copy.deepcopy(data)
    chosen = rng.sample(EDITS, rng.choice((1, 1, 1, 2, 3)))
    for edit in chosen:
        edit(after, rng)
    return ", ".join(edit.__name__ for edit in chosen), after


def service(data: Data, rng: random.Random) -> None:
    """One service more, or one less."""
    name = rng.choice(("firewall", "guard", "monitoring", "ssh", "web_ui", "power", "ansible"))
    value = {"clock_mhz": rng.choice((1800, 2100))} if name == "power" else True
    if data["services"].pop(name, None) is None:
        data["services"][name] = value


def gateway(data: Data, rng: random.Random) -> None:
    """The gateway comes, moves or goes."""
    node = rng.choice(data["nodes"])["name"]
    if "gateway" in data["services"] and rng.random() < 0.4:
        del data["services"]["gateway"]
    else:
        data["services"]["gateway"] = {"node": node}
        for group in data["groups"]:
            for each in (group, *group.get("alternatives", ())):
                each.get("engine", {}).pop("bind", None)


def node_name(data: Data, rng: random.Random) -> None:
    """A node is called something else."""
    old = rng.choice(data["nodes"])["name"]
    text = json.dumps(data).replace(f'"{old}"', f'"{old}x"').replace(f'"{old}:', f'"{old}x:')
    data.clear()
    data.update(json.loads(text))


def address(data: Data, rng: random.Random) -> None:
    """A node has another management address."""
    rng.choice(data["nodes"])["management"] = {"address": f"10.0.0.{rng.randint(60, 200)}/24"}


def addresses(data: Data, rng: random.Random) -> None:
    """Nodes take each other's management addresses, the last its own back or one that was free."""
    chosen = rng.sample(data["nodes"], min(len(data["nodes"]), rng.choice((2, 2, 3, 4))))
    found = [node["management"] for node in chosen]
    free = {"address": f"10.0.0.{rng.randint(201, 250)}/24"}
    for node, new in zip(chosen, [*found[1:], rng.choice((found[0], free))], strict=True):
        node["management"] = new


def network(data: Data, rng: random.Random) -> None:
    """The nodes are on another management network."""
    text = json.dumps(data).replace('"10.0.', f'"10.{rng.randint(1, 9)}.')
    data.clear()
    data.update(json.loads(text))


def taken(data: Data, rng: random.Random) -> None:
    """A new node gets the address of one that moves."""
    old = rng.choice(data["nodes"])
    management = old["management"]
    old["management"] = {"address": f"10.0.0.{rng.randint(201, 250)}/24"}
    group_added(data, rng)
    data["nodes"][-1]["management"] = management


def login(data: Data, rng: random.Random) -> None:
    """People log in under another name."""
    data["user"] = rng.choice(("ops", "nvidia", "lab"))


def title(data: Data, rng: random.Random) -> None:
    """The site is called something else."""
    data["name"] = rng.choice(("lab", "rack", "room"))


def group_gone(data: Data, rng: random.Random) -> None:
    """A group goes, and its nodes with it or not."""
    if len(data["groups"]) > 1:
        gone = data["groups"].pop(rng.randrange(len(data["groups"])))
        others = {node for group in data["groups"] for node in group["nodes"]}
        if rng.random() < 0.5:
            left = {*gone["nodes"]} - others
            data["nodes"] = [node for node in data["nodes"] if node["name"] not in left]
            data["cabling"] = [
                cable
                for cable in data.get("cabling", ())
                if not left & {end.partition(":")[0] for end in cable["endpoints"]}
            ]


def group_added(data: Data, rng: random.Random) -> None:
    """A node with a group of its own."""
    number = len(data["nodes"]) + rng.randint(20, 40)
    data["nodes"].append({"name": f"m{number}", "management": {"address": f"10.0.0.{number}/24"}})
    group = {"name": f"h{number}", "nodes": [f"m{number}"], **served(1, rng)}
    data["groups"].append(group)


def group_split(data: Data, rng: random.Random) -> None:
    """A pair becomes two nodes with an engine each, or two nodes change places."""
    group = rng.choice(data["groups"])
    if len(group["nodes"]) == 2 and "alternatives" not in group:
        first, second = group["nodes"]
        group.pop("same_as", None)
        group.update(served(1, rng), nodes=[first])
        data["groups"].append({"name": f"{group['name']}b", "nodes": [second], **served(1, rng)})


def head(data: Data, rng: random.Random) -> None:
    """Another node of a group is its head."""
    rng.choice(data["groups"])["nodes"].reverse()


def trade(data: Data, rng: random.Random) -> None:
    """Two groups of the same size have each other's nodes."""
    one, other = rng.choice(data["groups"]), rng.choice(data["groups"])
    if len(one["nodes"]) == len(other["nodes"]):
        one["nodes"], other["nodes"] = other["nodes"], one["nodes"]


def engine(data: Data, rng: random.Random) -> None:
    """Another engine, model or setting."""
    group = rng.choice(data["groups"])
    if "engine" in group and "shared" not in group["nodes"]:
        group.update(served(len(group["nodes"]), rng))
    elif "engine" in group:
        group["model"]["context_length"] = rng.choice((2048, 4096))


def name(data: Data, rng: random.Random) -> None:
    """A model answers to another name, or to one more."""
    group = rng.choice(data["groups"])
    if "model" in group:
        group["model"]["served_name"] = rng.choice(("chat", "code", f"of-{group['name']}"))


def secret(data: Data, rng: random.Random) -> None:
    """An engine needs a secret, or needs it no more."""
    group = rng.choice(data["groups"])
    if "engine" in group and group["engine"].pop("secrets", None) is None:
        group["engine"]["secrets"] = ["HF_TOKEN"]


def turn(data: Data, rng: random.Random) -> None:
    """Another alternative has its turn, or alternatives go."""
    for group in data["groups"]:
        if others := group.get("alternatives"):
            group["active"] = rng.choice([group["name"], *(each["name"] for each in others)])
            if rng.random() < 0.2:
                del group["alternatives"]
                group["active"] = group["name"]


def fabric(data: Data, rng: random.Random) -> None:
    """Other subnets, another MTU, or another cabling."""
    kind = data["topology"]["kind"]
    change = rng.choice(("pool", "mtu", "cables", "ports"))
    cables = data.get("cabling", [])
    if change == "pool":
        data["topology"]["subnet_pool"] = f"10.{rng.randint(110, 120)}.0.0/16"
    elif change == "mtu" and kind == "switch":
        data["topology"]["mtu"] = rng.choice((1500, 9000))
    elif change == "cables" and len(cables) > 1:
        one, other = rng.sample(cables, 2)
        one["endpoints"][1], other["endpoints"][1] = other["endpoints"][1], one["endpoints"][1]
    elif cables:
        ends = rng.choice(cables)["endpoints"]
        ends[:] = [end.replace(":p0", ":p1") if rng.random() < 0.5 else end for end in ends]


EDITS: Sequence[Edit] = (
    *(service, gateway, node_name, address, login, title, group_gone, group_added, group_split),
    *(addresses, network, taken, head, trade, engine, name, secret, turn, fabric),
)


def random_plans(seed: int, count: int) -> Iterator[tuple[str, Built, Built]]:
    """Random edits, each of the site before it; a new site after a dozen."""
    rng = random.Random(seed)
    made = 0
    while made < count:
        data = random_site(rng)
        old = built(json.dumps(data))
        for _ in range(12):
            what, after = edited(data, rng)
            new = built(json.dumps(after))
            if old and new and made < count:
                yield f"seed {seed}, {made}: {what}", old, new
                made += 1
                data, old = after, new


def golden() -> Iterator[tuple[str, Built]]:
    """The golden sites and the example sites, by name."""
    for path in (*ROOT.glob("tests/golden/*/site.yaml"), *ROOT.glob("sites/**/*.yaml")):
        if found := built(path.read_text(), beside(path)):
            yield f"{path.parent.name}/{path.stem}", found


def main() -> int:
    """The number of plans with a fault, at most 1."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pairs", action="store_true")
    options = parser.parse_args()
    if options.pairs:
        sites = list(golden())
        cases = ((f"{a} to {b}", one, other) for (a, one), (b, other) in permutations(sites, 2))
    else:
        cases = random_plans(options.seed, options.count)
    plans = wrong = steps = taken = refused = 0
    for what, before, after in cases:
        plans += 1
        try:
            found = planned(before, after)
        except PlanError as error:
            complaints = [str(error)]
        else:
            complaints = [*faults(found), *delays(found)]
            steps += len(found.outcome.steps)
            taken, refused = (a + b for a, b in zip((taken, refused), swaps(found), strict=True))
        wrong += bool(complaints)
        for complaint in complaints[:3]:
            print(f"{what}: {complaint[:400]}")
    print(
        f"{plans} plans of {steps} steps, {wrong} with faults; none goes without any of its steps"
    )
    print(f"neighbours swapped: {refused} refused, {taken} taken")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
