"""Prints a site through the templates: in goes a site, out comes the tree of its bundle.

The path of a template is the path of its file; a file stands in the plan below, with its mode, what
a change of it needs on the node, and which sites and nodes have it.
"""

import contextlib
import json
import math
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath
from typing import Any

import yaml
from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import escape

from generator import __version__
from generator.access import forwards, logins
from generator.diagram.layout import layout
from generator.diagram.mermaid import readable_graph
from generator.diagram.shapes import DARK, LIGHT
from generator.environment import QOS_DSCP, QOS_PRIORITY
from generator.fit.table import page
from generator.resources import PACKAGE, TEMPLATES
from generator.services import firewall, hub, ssh
from generator.services.dashboard import dashboard
from generator.site import Node, Site
from generator.tree import Change, File, Tree, tree


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of each node's folder; `shared` where all nodes have the same text.

    `values` are what its template prints beside the site and the node.
    """

    path: str
    change: Change
    mode: int = 0o644
    wanted: Callable[[Site, Node], bool] | None = None
    shared: bool = False
    values: Callable[[Site, Node], dict[str, object]] | None = None

    def is_wanted(self, site: Site, node: Node) -> bool:
        """Whether the node has the file."""
        return self.wanted is None or self.wanted(site, node)

    def given(self, site: Site, node: Node) -> dict[str, Any]:
        """What the template is given."""
        more = self.values(site, node) if self.values else {}
        return {"site": site, "node": node, **more}

    def text(self, site: Site, node: Node) -> str:
        """The file as it is printed for the node."""
        return printed(f"node/{self.path}", **self.given(site, node))


def _several(site: Site, node: Node) -> bool:
    return len(site.nodes) > 1


def _fabric(site: Site, node: Node) -> bool:
    return site.has_fabric


def _unit(site: Site, node: Node) -> bool:
    return not site.engine.is_slurm_job


def _job(site: Site, node: Node) -> bool:
    return len(site.nodes) > 1 or site.engine.is_slurm_job


def _script(name: str) -> Callable[[Site, Node], bool]:
    """Nodes whose container is given that script."""
    path = f"/opt/sparkgen/{name}"
    return lambda site, node: any(mount.path == path for mount in node.container.mounts)


def _web_ui(site: Site, node: Node) -> bool:
    return site.web_ui is not None and node.is_head


def _asked(name: str) -> Callable[[Site, Node], bool]:
    """All nodes of a site that asks for that service."""
    return lambda site, node: name in site.services


def _firewall(site: Site, node: Node) -> dict[str, object]:
    return {"rules": firewall.rules(site, node)}


def _qos(site: Site, node: Node) -> dict[str, object]:
    return {"dscp": QOS_DSCP, "priority": QOS_PRIORITY}


def _head_with_models(site: Site, node: Node) -> bool:
    return "models" in site.services and node.is_head and not site.model.file


def _models(site: Site, node: Node) -> dict[str, object]:
    return {
        "downloads": hub.downloads(site),
        "folders": hub.folders(site),
        "copies": hub.copies(site, node),
    }


def _ssh(site: Site, node: Node) -> dict[str, object]:
    return {
        "peers": ssh.peers(site, node),
        "networks": ssh.networks(node),
        "trusted": ssh.trusted(site, node),
    }


def _keys(site: Site, node: Node) -> bool:
    return "ssh" in site.services and node.is_head and _several(site, node)


def _several_with_ssh(site: Site, node: Node) -> bool:
    return "ssh" in site.services and _several(site, node)


NODE_PLAN = (
    # netplan refuses to be read by others: it may hold passwords.
    Entry("etc/netplan/40-cx7.yaml", Change.NETPLAN, 0o600, _fabric),
    Entry("etc/fail2ban/jail.d/sparkgen.conf", Change.SSH, wanted=_asked("ssh"), values=_ssh),
    Entry(
        "etc/ssh/ssh_config.d/40-sparkgen.conf",
        Change.NOTHING,
        wanted=_several_with_ssh,
        values=_ssh,
    ),
    Entry("etc/ssh/sshd_config.d/40-sparkgen.conf", Change.SSH, wanted=_asked("ssh"), values=_ssh),
    Entry("etc/nccl.conf", Change.RESTART),
    Entry("etc/profile.d/sparkgen.sh", Change.LOGIN),
    Entry("etc/sparkgen/engine.env", Change.RESTART),
    Entry("etc/sparkgen/hosts", Change.HOSTS, wanted=_several),
    Entry("etc/sysctl.d/90-sparkgen.conf", Change.SYSCTL, wanted=_fabric),
    Entry("etc/systemd/system/sparkgen-engine.service", Change.UNIT, wanted=_unit),
    Entry("etc/systemd/system/sparkgen-guard.service", Change.GUARD, wanted=_asked("guard")),
    Entry(
        "etc/systemd/system/sparkgen-monitoring.service",
        Change.MONITORING,
        wanted=_asked("monitoring"),
    ),
    Entry("etc/systemd/system/sparkgen-qos.service", Change.QOS, wanted=_asked("qos"), values=_qos),
    Entry("etc/systemd/system/sparkgen-web-ui.service", Change.WEB_UI, wanted=_web_ui),
    Entry("etc/systemd/system/ssh.service.d/sparkgen.conf", Change.DROP_IN, wanted=_asked("guard")),
    Entry(
        "etc/systemd/system/system.slice.d/sparkgen.conf", Change.DROP_IN, wanted=_asked("guard")
    ),
    Entry("opt/sparkgen/compose.yaml", Change.RESTART, wanted=_unit),
    Entry("opt/sparkgen/firewall.sh", Change.FIREWALL, 0o755, _asked("firewall"), values=_firewall),
    Entry("opt/sparkgen/follow.sh", Change.RESTART, 0o755, _script("follow.sh")),
    Entry("opt/sparkgen/guard.py", Change.GUARD, wanted=_asked("guard")),
    Entry("opt/sparkgen/health.py", Change.RESTART, 0o644, _script("health.py")),
    Entry("opt/sparkgen/health.sh", Change.RESTART, 0o755, _script("health.sh")),
    Entry("opt/sparkgen/hostfile", Change.NOTHING, wanted=_several, shared=True),
    Entry("opt/sparkgen/launch.sh", Change.NOTHING, 0o755, _unit),
    Entry("opt/sparkgen/llama.sh", Change.RESTART, 0o755, _script("llama.sh")),
    Entry("opt/sparkgen/models.sh", Change.NOTHING, 0o755, _head_with_models, values=_models),
    Entry("opt/sparkgen/monitoring.yaml", Change.MONITORING, wanted=_asked("monitoring")),
    Entry("opt/sparkgen/mpi.sh", Change.RESTART, 0o755, _script("mpi.sh")),
    Entry("opt/sparkgen/nccl-test.sh", Change.NOTHING, 0o755, _several, shared=True),
    Entry("opt/sparkgen/options.yaml", Change.RESTART, 0o644, _script("options.yaml")),
    Entry("opt/sparkgen/rank.sh", Change.RESTART, 0o755, _script("rank.sh")),
    Entry("opt/sparkgen/ray.sh", Change.RESTART, 0o755, _script("ray.sh")),
    Entry("opt/sparkgen/serve.py", Change.RESTART, 0o644, _script("serve.py")),
    Entry("opt/sparkgen/serve.sbatch", Change.NOTHING, 0o755, _job, shared=True),
    Entry("opt/sparkgen/session.sh", Change.RESTART, 0o755, _script("session.sh")),
    Entry("opt/sparkgen/ssh_config", Change.RESTART, 0o644, _script("ssh_config")),
    Entry("opt/sparkgen/sshd_config", Change.RESTART, 0o644, _script("sshd_config")),
    Entry("opt/sparkgen/ssh-keys.sh", Change.NOTHING, 0o755, _keys, values=_ssh),
    Entry("opt/sparkgen/web-ui.yaml", Change.WEB_UI, wanted=_web_ui),
    Entry("opt/sparkgen/wait-fabric.sh", Change.NOTHING, 0o755, _fabric),
    # These stay in the folder that was copied: only etc and opt are installed.
    Entry("install.sh", Change.NOTHING, 0o755),
    Entry("verify.sh", Change.NOTHING, 0o755),
)

# For the operator's machine: path and mode.
OPERATOR_PLAN = {
    "operator/deploy.sh": 0o755,
    "operator/ssh_config": 0o644,
    "operator/tunnels.sh": 0o755,
}

PROMETHEUS = "operator/prometheus.yml"
DASHBOARD = "operator/dashboard.json"

README = "README.md"
CABLING = "cabling.svg"
MANIFEST = "MANIFEST.json"
CHECKSUMS = "SHA256SUMS"


class RenderError(Exception):
    """A template failed: a fault of sparkgen's own, never of the site file."""


def render(site: Site, source_sha256: str, nodes: Iterable[Node] = ()) -> Tree:
    """The whole bundle; `source_sha256` is that of the site file, for the manifest.

    `nodes` may hand over the site's nodes one by one, for a caller that shows progress.
    """
    files = [
        File(path, printed(path, **_values(site, path)), mode, Change.NOTHING)
        for path, mode in {README: 0o644, **OPERATOR_PLAN}.items()
    ]
    if site.monitoring:
        prometheus = printed(PROMETHEUS, **_values(site, PROMETHEUS))
        files.append(File(PROMETHEUS, prometheus, 0o644, Change.NOTHING))
        files.append(File(DASHBOARD, dashboard(site), 0o644, Change.NOTHING))
    if site.has_fabric:
        files.append(File(CABLING, cabling(site), 0o644, Change.NOTHING))
    files += _node_folders(site, nodes or site.nodes)
    bundle = tree(files)
    manifest = _manifest(site, source_sha256, bundle)
    return tree([*files, File(MANIFEST, manifest, 0o644, Change.NOTHING)])


def cabling(site: Site) -> str:
    """The picture of the cabling, as SVG."""
    return printed(CABLING, **_values(site, CABLING))


def recipe(site: Site, path: str) -> tuple[str, dict[str, Any]] | None:
    """The template that prints a file, and what it is given; None if no template does."""
    if path in (README, CABLING, PROMETHEUS, *OPERATOR_PLAN):
        return path, _values(site, path)
    name, _, rest = path.partition("/")
    node = next((node for node in site.nodes if node.name == name), None)
    entry = next((entry for entry in NODE_PLAN if entry.path == rest), None)
    if node is None or entry is None:
        return None
    return f"node/{rest}", entry.given(site, node)


def _values(site: Site, path: str) -> dict[str, Any]:
    """What the template of a file of no node is given."""
    if path == CABLING:
        return {"site": site, "drawing": layout(site), "light": LIGHT, "dark": DARK}
    reached = {"site": site, "logins": logins(site), "forwards": forwards(site)}
    if path == README:
        return reached | {"graph": readable_graph(site), "memory": page(site.memory)}
    return reached


def _node_folders(site: Site, nodes: Iterable[Node]) -> Iterator[File]:
    shared = {
        entry.path: entry.text(site, site.head)
        for entry in NODE_PLAN
        if entry.shared and entry.is_wanted(site, site.head)
    }
    for node in nodes:
        own = [
            _node_file(entry, site, node, shared.get(entry.path))
            for entry in NODE_PLAN
            if entry.is_wanted(site, node)
        ]
        yield from own
        yield File(f"{node.name}/{CHECKSUMS}", _checksums(own), 0o644, Change.NOTHING)


def _node_file(entry: Entry, site: Site, node: Node, shared: str | None) -> File:
    text = shared or entry.text(site, node)
    change = entry.change
    if change is Change.NOTHING and any(m.path == f"/{entry.path}" for m in node.container.mounts):
        change = Change.RESTART
    return File(f"{node.name}/{entry.path}", text, entry.mode, change)


def _checksums(files: list[File]) -> str:
    """What `sha256sum --check` reads in the node's folder."""
    names = ((PurePosixPath(*PurePosixPath(file.path).parts[1:]), file) for file in files)
    return "".join(f"{file.sha256}  {name}\n" for name, file in names)


def _manifest(site: Site, source_sha256: str, bundle: Tree) -> str:
    content = {
        "generator": f"sparkgen {__version__}",
        "site": {"file": site.file, "sha256": source_sha256},
        "nodes": [node.name for node in site.nodes],
        "cables": [[str(cable.a), str(cable.b)] for cable in site.cables],
        "files": {
            path: {
                "mode": f"{file.mode:04o}",
                "sha256": file.sha256,
                "change": file.change.value,
            }
            for path, file in bundle.items()
        },
    }
    return json.dumps(content, indent=2) + "\n"


def printed(template: str, **values: Any) -> str:
    """What a template makes of these values."""
    return str(_template(template).render(values))


class _CompiledTemplates(FileSystemBytecodeCache):
    """Compiled templates, kept where Python keeps compiled modules, and only if Python may too."""

    def load_bytecode(self, bucket: Bucket) -> None:
        if not sys.dont_write_bytecode:
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        with contextlib.suppress(OSError):
            if not sys.dont_write_bytecode:
                super().dump_bytecode(bucket)


@cache
def _template(name: str) -> Any:
    return _environment().get_template(f"{name}.j2")


@cache
def _environment() -> Environment:
    folder = str(PACKAGE / "__pycache__")
    return environment(bytecode_cache=_CompiledTemplates(folder, "template-%s.cache"))


def environment(kind: type[Environment] = Environment, **more: Any) -> Environment:
    """What templates are printed with."""
    made = kind(
        loader=FileSystemLoader(TEMPLATES, encoding="utf-8"),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
        **more,
    )
    made.filters |= {
        "sh": sh,
        "compose": compose,
        "markdown": markdown,
        "xml": xml,
        "xml_comment": xml_comment,
        "yaml": block_yaml,
    }
    return made


def sh(value: str | tuple[str, ...]) -> str:
    """One word, or several, as a shell reads them back."""
    return _quoted(value) if isinstance(value, str) else " ".join(map(_quoted, value))


def _quoted(word: str) -> str:
    """Commas too: shellcheck takes a bare one in an array for a mistake (SC2054)."""
    quoted = shlex.quote(word)
    return f"'{word}'" if "," in word and quoted == word else quoted


def compose(value: str) -> str:
    """A text in a Compose file: double quotes for YAML, and no `$` left to interpolate."""
    return json.dumps(value).replace("$", "$$")


def xml(value: str) -> str:
    """A text between the tags of XML, or in double quotes."""
    return str(escape(value))


def xml_comment(value: str) -> str:
    """A text in a comment of XML, which two hyphens in a row would end."""
    return value.replace("--", "-&#45;")


def block_yaml(value: Mapping[str, Any]) -> str:
    """A mapping as YAML in block style, sorted: the order in a site file means nothing."""
    return str(yaml.dump(value, Dumper=_Indented, sort_keys=True, width=math.inf))


class _Indented(yaml.SafeDumper):
    """Lists are indented below their keys, as people write them."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless=False)


def markdown(value: str) -> str:
    """A text in a paragraph or table cell of Markdown, none of it markup."""
    return re.sub(r"([\\`*_\[\]<>|#{}])", r"\\\1", value)
