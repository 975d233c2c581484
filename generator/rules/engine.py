"""Rules about the engine, its image and its flags."""

import re
from collections.abc import Mapping

from generator import catalogs
from generator.catalogs.engines import ENGINE_TRAITS
from generator.catalogs.flag_files import versions
from generator.catalogs.versions import release, version
from generator.diagnostics import (
    KeyPath,
    Proposal,
    Related,
    Replace,
    Severity,
    all_nearest,
    did_you_mean,
    listed,
    misspelt,
    removal,
    renamings,
    replacements,
    slips,
)
from generator.engines import ENGINES
from generator.models.architecture import shape
from generator.rules import splits
from generator.rules.images import with_added
from generator.rules.listening import PortsOfNodes, has_ray_workers, launcher, ports_of_engine
from generator.rules.nodes import Nodes
from generator.rules.registry import Fault, Faults, rule
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel, Settings

MUTABLE_TAGS = ("", "latest", "main", "nightly", "dev", "edge", "stable")


@rule("SG602")
def launcher_of_another_engine(engine: DeclaredEngine) -> Faults:
    """The launcher is one that the engine has."""
    launchers = ENGINE_TRAITS[engine.name].launchers
    if engine.launcher and engine.launcher not in launchers:
        yield Fault(
            f"{ENGINE_TRAITS[engine.name].title} has no launcher '{engine.launcher}'",
            ("engine", "launcher"),
            f"write {listed(launchers)}",
        )


@rule("SG603", unless="SG201 SG203 SG204 SG207 SG208 SG209 SG243")
def parallel_product(engine: DeclaredEngine, nodes: Nodes, model: DeclaredModel) -> Faults:
    """Tensor x pipeline x data is the number of nodes."""
    sizes, count = engine.parallel, len(nodes)
    if sizes.ranks == count:
        return
    product = f"{sizes.tensor} x {sizes.pipeline} x {sizes.data} = {sizes.ranks}"
    found = splits.readings(count, sizes, shape(model))
    some = listed(f"'{splits.shown(split)}'" for split in found[:_MOST_SPLITS])
    more = "" if len(found) == 1 else f", or other sizes whose product is {count}"
    there = "is 1 node" if count == 1 else f"are {count} nodes"
    yield Fault(
        f"tensor x pipeline x data is {product}, and there {there}",
        ("engine", "parallel"),
        f"write {some}{more}" if count > 1 else "remove 'parallel'",
        at_key=True,
        related=(Related("the nodes", ("nodes",)),),
        proposals=splits.proposals(sizes, found) if count > 1 else removal(("engine", "parallel")),
    )


_MOST_SPLITS = 4


@rule("SG605", Severity.WARNING, suppressed_by="SG441")
def image_of_another_version(engine: DeclaredEngine) -> Faults:
    """The image contains the engine and version that the site names."""
    known = catalogs.image(engine.image)
    if known is None:
        return
    if known.engine != engine.name:
        yield Fault(
            f"the image contains {known.engine}, not {engine.name}",
            ("engine", "image"),
            f"use an image of {engine.name}, or write 'name: {known.engine}'",
        )
    elif known.version and version(known.version).public != version(engine.version).public:
        yield Fault(
            f"the image contains {known.engine} {known.version}, not {engine.version}",
            ("engine", "version"),
            f"write 'version: {known.version}', or another image",
            related=(Related("the image", ("engine", "image")),),
        )


@rule("SG606", Severity.WARNING)
def image_of_another_nccl(engine: DeclaredEngine) -> Faults:
    """The image contains the NCCL that the site names."""
    known = catalogs.image(engine.image)
    if not (known and known.nccl and engine.nccl):
        return
    if release(known.nccl) != release(engine.nccl):
        yield Fault(
            f"the image contains NCCL {known.nccl}, not {engine.nccl}",
            ("engine", "nccl"),
            f"write 'nccl: {known.nccl}', or another image",
        )


@rule("SG607", unless="SG602")
def image_without_ray(engine: DeclaredEngine) -> Faults:
    """An image for the Ray launcher contains Ray."""
    known = catalogs.image(engine.image)
    if engine.launcher == "ray" and known and known.ray is False:
        text, edits = with_added(engine)
        native: Proposal = (Replace(("engine", "launcher"), "native"),)
        yield Fault(
            "the image does not contain Ray",
            ("engine", "image"),
            f"write 'launcher: native', or {text}, which is built with it",
            proposals=(native, edits),
        )


@rule("SG612", Severity.WARNING, unless="SG602 SG605")
def image_perhaps_without_ray(engine: DeclaredEngine) -> Faults:
    """An image for the Ray launcher is known to contain Ray."""
    known = catalogs.image(engine.image)
    if engine.launcher == "ray" and known and known.ray is None:
        yield Fault(
            "sparkgen does not know whether the image contains Ray",
            ("engine", "image"),
            "write 'launcher: native', which needs none, or look into the image and say so in a "
            "waiver",
        )


@rule("SG608", unless="SG602")
def port_of_two_services(
    engine: DeclaredEngine, nodes: Nodes, service_ports: PortsOfNodes
) -> Faults:
    """No two services of a node use the same port."""
    reported: set[tuple[str, ...]] = set()
    for node, own in ports_of_engine(engine, [node.name for node in nodes]).items():
        ports = {**own, **service_ports[node]}
        owners: dict[int, str] = {}
        # Report the port that the site states, not the default that it collides with.
        for name in sorted(ports, key=lambda name: ports[name].is_written):
            port = ports[name]
            owner = owners.setdefault(port.number, name)
            names = (owner, name) if owner != name else (name,)
            if names in reported:
                continue
            reported.add(names)
            if owner != name:
                place = Related(f"'{owner}'", ports[owner].path)
                yield Fault(
                    f"port {port.number} is used by '{owner}' and by '{name}'",
                    port.path,
                    "give one of them another port",
                    related=(place,) if ports[owner].is_written else (),
                )
            elif has_ray_workers(engine, port.number):
                yield Fault(
                    f"port {port.number} is in the range of Ray's workers, 10002 to 19999",
                    port.path,
                    "choose one outside of it",
                )


@rule("SG611", unless="SG602 SG603")
def unused_port(engine: DeclaredEngine) -> Faults:
    """Every port that the site states is opened by something."""
    known = ENGINES[engine.name].default_ports(launcher(engine), engine.parallel)
    names = [name for name in engine.ports if name not in known]
    if names:
        several = "s" if len(names) > 1 else ""
        yield Fault(
            f"no program here uses the port{several} {listed(map(repr, names))}",
            ("engine", "ports", names[0]),
            did_you_mean(names[0], known)
            or (
                f"remove it: '{launcher(engine)}' has {listed(map(repr, known), 'and')}"
                if known
                else "remove it"
            ),
            at_key=True,
            proposals=removal(*(("engine", "ports", name) for name in names))
            if not known
            else renamings(
                ("engine", "ports", names[0]), misspelt(names[0], all_nearest(names[0], known))
            ),
        )


_COMMIT = r"(^|[-_.])[0-9a-f]{40}$"


@rule("SG609", Severity.WARNING)
def mutable_tag(engine: DeclaredEngine, services: Mapping[str, Settings]) -> Faults:
    """An image has a tag that does not move."""
    images: dict[KeyPath, str] = {("engine", "image"): engine.image} if engine.image else {}
    if engine.derived:
        images = {("engine", "image", "from"): engine.derived.base}
    for service, settings in services.items():
        if "image" in settings:
            images["services", service, "image"] = settings["image"]
    for path, image in images.items():
        if moving := moving_tag(image):
            yield Fault(moving[0], path, moving[1])


def moving_tag(image: str) -> tuple[str, str] | None:
    """What is wrong with an image whose tag moves, and what to write."""
    name, _, digest = image.partition("@")
    tag = name.rsplit("/", 1)[-1].partition(":")[2]
    is_mutable = tag in MUTABLE_TAGS or "latest" in tag or "nightly" in tag
    if digest or not is_mutable or re.search(_COMMIT, tag):
        return None
    untagged = "an image without a tag is 'latest', which can change at any time"
    message = f"the tag '{tag}' can name another image at any time" if tag else untagged
    pinned = f"{name.removesuffix(f':{tag}')}@sha256:..."
    return message, f"write a fixed tag or, better, a digest: {pinned}"


@rule("SG613", Severity.WARNING, suppressed_by="SG605 SG609")
def version_of_another_form(engine: DeclaredEngine) -> Faults:
    """A version, or a tag that contains one, is written the way the engine writes it."""
    held = catalogs.image(engine.image)
    of_image = held.version if held and held.version and held.version in engine.image else ""
    dots = list(_missing_dot(engine))
    for text, place in ((engine.version if not dots else "", "version"), (of_image, "image")):
        plain = re.sub(r"(^|(?<=\.))0+(?=[0-9])", "", text)
        # NVIDIA numbers its images by year and month.
        if plain != text and not re.match(r"2[0-9]\.[0-9]{2}(?![0-9.])", text):
            yield Fault(
                f"'{text}' is not how {ENGINE_TRAITS[engine.name].title} numbers its releases",
                ("engine", place),
                f"write {plain}, or another version",
            )
    yield from dots
    tag = engine.image.rpartition(":")[2]
    known = catalogs.tags(engine.image)
    has_known_form = re.sub(r"[0-9]", "0", tag) in {re.sub(r"[0-9]", "0", one) for one in known}
    near = [] if has_known_form else [one for one in known if slips(tag, one) < 2]
    if near:
        yield Fault(
            f"no tag of this image looks like '{tag}'",
            ("engine", "image"),
            f"did you mean {listed(map(repr, near))}?",
        )


def _missing_dot(engine: DeclaredEngine) -> Faults:
    """No major version is skipped: where one would be, a release one typo away is meant."""
    known = versions(engine.name)
    if _major(engine.version) <= max(map(_major, known), default=0) + 1:
        return
    near = [one for one in known if slips(engine.version, one) == 1]
    if near:
        yield Fault(
            f"no {ENGINE_TRAITS[engine.name].title} {engine.version} is known",
            ("engine", "version"),
            f"did you mean {listed(map(repr, near))}?",
            proposals=replacements(("engine", "version"), near) if len(near) == 1 else (),
        )


def _major(version: str) -> int:
    return next(iter(release(version)), 0)
