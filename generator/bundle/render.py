"""Renders a site's templates: from a site to the tree of its bundle."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from generator.activation import DROP_IN, NOTHING, RESTART, Activation
from generator.bundle import plan
from generator.bundle.access import fetched, forwards, images, logins
from generator.bundle.diagram.layout import layout
from generator.bundle.diagram.memory import picture
from generator.bundle.diagram.shapes import DARK, LIGHT
from generator.bundle.manifest import checksums, manifest
from generator.bundle.page import page
from generator.bundle.payload import copied, original
from generator.bundle.runbook import runbook
from generator.bundle.templates import printed
from generator.bundle.tree import File, Tree, decoded, tree
from generator.failures.analysis import analysis
from generator.failures.table import rows
from generator.site import CarriedFile, Node, Part, Site
from generator.site.entry import Entry, OperatorEntry

if TYPE_CHECKING:
    from generator.site.job import Job

# The files that build an image.
_IMAGE = (plan.DOCKERFILE, plan.IMAGE_FACTS)


def render(
    site: Site, source_sha256: str, nodes: Iterable[Node] = (), texts: Mapping[str, str] = {}
) -> Tree:
    """Render the whole bundle; `source_sha256` is that of the site file, for the manifest.

    `nodes` may supply the site's nodes one by one, for a caller that shows progress. `texts` are
    those that the site was read from, by their names in each node's folder.
    """
    files = [*_node_folders(site, nodes or site.nodes)]
    files += [File(path, printed(path, **v)) for path, v in _pages(site, files)]
    files += [
        File(path, printed(template, **values | {"address": site.address}))
        for part in site.groups
        for values in [_values(part, plan.README)]
        for path, template in plan.group_pages(part).items()
    ]
    files += [
        File(plan.memory_picture(part), printed(plan.MEMORY, **_values(part, plan.MEMORY)))
        for part in site.parts
        if part.memory and part.memory.nodes
    ]
    for entry in plan.operator_entries(site):
        files.append(File(entry.path, _operator_text(entry, site), entry.mode))
    files += [
        File(setup.path, printed(plan.switch_template(setup), site=site, switch=setup))
        for setup in site.switch_setups
    ]
    files += (file for part in site.parts for file in _image(site, part))
    files += (file for job in site.jobs for file in _job(job))
    if site.has_fabric:
        files.append(File(plan.CABLING, cabling(site)))
    bundle = tree(files)
    text = manifest(site, source_sha256, bundle)
    recorded = [
        File(f"{node.name}/{name}", text) for node in site.nodes for name, text in texts.items()
    ]
    return tree([*files, *recorded, File(plan.MANIFEST, text)])


def _pages(site: Site, nodes: Sequence[File]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The templates of the runbook and of the page, with their values; `nodes` are their files."""
    texts = {file.path: file.text for file in nodes} if site.parts else {}
    failures = rows(analysis(site, texts).failures()) if site.parts else ()
    values = {**_values(site, plan.README), "failures": failures}
    yield from ((path, values) for path in (plan.README, plan.REFERENCE))
    yield plan.PAGE, {"site": site, **page(site, printed(plan.README, **values), failures, nodes)}


def _image(site: Site, part: Part) -> Iterator[File]:
    """The build files of a part's image, and its context."""
    if build := part.image_build:
        folder = part.image_folder
        for template in _IMAGE:
            path = f"{folder}/{template.rpartition('/')[2]}"
            yield File(path, printed(template, **_part_image(site, part)))
        yield File(f"{folder}/build.sh", copied(plan.BUILD_IMAGE), 0o755)
        for file in build.files:
            mode = 0o755 if file.is_executable else 0o644
            yield File(f"{folder}/context/{file.path}", decoded(file.data), mode)


def _job(job: "Job") -> Iterator[File]:
    """What starts a job from the operator's machine."""
    yield File(f"{job.folder}/job.env", printed(plan.JOB_FACTS, site=job))
    yield File(f"{job.folder}/start.sh", copied(plan.START_JOB), 0o755)


def cabling(site: Site) -> str:
    """Render the picture of the cabling as SVG."""
    return printed(plan.CABLING, **_values(site, plan.CABLING))


def recipe(site: Site, path: str) -> tuple[str, dict[str, Any]] | None:
    """The template of a file and its values; None if the file has no template."""
    printed_paths = {
        entry.path for entry in plan.operator_entries(site) if not (entry.made or entry.payload)
    }
    if page := _of_image(site, path) or _of_group(site, path):
        return page
    if path in (plan.README, plan.REFERENCE, plan.PAGE):
        return path, dict(_pages(site, [*_node_folders(site, site.nodes)]))[path]
    if path in (plan.CABLING, plan.MEMORY, *printed_paths):
        return path, _values(site, path)
    setup = next((setup for setup in site.switch_setups if setup.path == path), None)
    if setup:
        return plan.switch_template(setup), {"site": site, "switch": setup}
    name, _, rest = path.partition("/")
    node = next((node for node in site.nodes if node.name == name), None)
    if node is None:
        return None
    for entry in plan.node_entries(site):
        for part, member in entry.instances(site, node):
            if part.place(entry.path) == rest:
                return None if entry.payload else (f"node/{entry.path}", entry.given(part, member))
    return next((page for drop_in, page in _drop_ins(site, node) if drop_in == rest), None)


def _part_image(site: Site, part: Part) -> dict[str, Any]:
    """Other nodes of a part are reached at their addresses in the site, as in nodes.env."""
    names = {node.name for node in part.workers}
    return {"site": part, "others": [node for node in site.nodes if node.name in names]}


def _of_image(site: Site, path: str) -> tuple[str, dict[str, Any]] | None:
    """The template of a file that builds an image; a group's is in a folder of its own."""
    folder, _, name = path.rpartition("/")
    template = next((each for each in _IMAGE if each.endswith(f"/{name}")), None)
    for part in site.parts:
        if template and part.image_build and folder == part.image_folder:
            return template, _part_image(site, part)
    return None


def _of_group(site: Site, path: str) -> tuple[str, dict[str, Any]] | None:
    """The same for a file about one group, or one job."""
    for job in site.jobs:
        if path == f"{job.folder}/job.env":
            return plan.JOB_FACTS, {"site": job}
    for part in site.groups:
        if template := plan.group_pages(part).get(path):
            return template, _values(part, plan.README) | {"address": site.address}
        if path == plan.memory_picture(part):
            return plan.MEMORY, _values(part, plan.MEMORY)
    return None


def _values(site: Site, path: str) -> dict[str, Any]:
    """The values of the template of a file that belongs to no node."""
    if path == plan.CABLING:
        colors = {"light": LIGHT, "dark": DARK}
        return {"site": site, "drawing": layout(site), **colors, "linked": False}
    if path == plan.MEMORY and site.serving and site.serving.memory:
        drawing = picture(site.serving.title, site.serving.memory)
        return {"site": site, "drawing": drawing, "light": LIGHT, "dark": DARK}
    own = {value.__name__: value(site) for value in _ACCESS.get(path, ())}
    return {"site": site, **own, **(runbook(site) if path == plan.README else {})}


# How to reach a site, as these templates print it.
_ACCESS: Mapping[str, tuple[Callable[[Site], Any], ...]] = {
    plan.README: (logins, forwards),
    "operator/site.env": (images, fetched, forwards),
    "operator/ssh_config": (logins,),
}


def _node_folders(site: Site, nodes: Iterable[Node]) -> Iterator[File]:
    entries = plan.node_entries(site)
    known: dict[Hashable, str] = {}
    for node in nodes:
        members = [member for _, member in site.parts_of(node.name)]
        mounted = {mount.path for member in members for mount in member.container.mounts}
        own = []
        for entry in entries:
            for part, member in entry.instances(site, node):
                path = part.place(entry.path)
                is_read = entry.activation is NOTHING and f"/{path}" in mounted
                activation = RESTART if is_read else entry.activation
                text = _text(entry, part, member, known)
                own.append(File(f"{node.name}/{path}", text, entry.mode, activation))
        jobs = (file for job, _ in site.jobs_of(node.name) for file in job.carried)
        carried = {file.path: _carried(node, file, NOTHING) for file in jobs}
        engines = (file for member in members for file in member.carried)
        carried |= {file.path: _carried(node, file, RESTART) for file in engines}
        own += carried.values()
        own += (
            File(f"{node.name}/{path}", printed(template, **values), 0o644, DROP_IN)
            for path, (template, values) in _drop_ins(site, node)
        )
        yield from own
        yield File(f"{node.name}/{plan.CHECKSUMS}", checksums(own))


def _drop_ins(site: Site, node: Node) -> Iterator[tuple[str, tuple[str, dict[str, Any]]]]:
    """How soon the kernel ends what else runs there: paths, the template and its values."""
    for each in node.other:
        if each.oom_score is not None:
            path = f"etc/systemd/system/{each.name}.service.d/sparkgen.conf"
            yield path, (plan.OOM_SCORE, {"site": site, "program": each})


def _carried(node: Node, file: CarriedFile, activation: Activation) -> File:
    mode = 0o755 if file.is_executable else 0o644
    return File(f"{node.name}{file.path}", decoded(file.data), mode, activation)


def _operator_text(entry: OperatorEntry, site: Site) -> str:
    if entry.payload:
        return copied(entry.path)
    if make := entry.made:
        return make(site)
    return printed(entry.path, **_values(site, entry.path))


def _text(entry: Entry, site: Site, node: Node, known: dict[Hashable, str]) -> str:
    """The text of a node's file; text that nodes have in common is rendered once."""
    if entry.payload:
        return copied(original(f"node/{entry.path}"))
    template = f"node/{entry.path}"
    if not entry.alike:
        return printed(template, **entry.given(site, node))
    key = site.place(entry.path), entry.alike(site, node)
    if key not in known:
        known[key] = printed(template, **entry.given(site, node))
    return known[key]
