"""Nodes of a site in the state that its bundle describes, and what may differ on one of them."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import yaml
from captured_nodes import Machine, address
from test_import import COMMIT, DISK, containers, machine
from valid_sites import valid_file

from generator.bundle.render import render
from generator.pipeline import ValidReading
from generator.resources import ROOT
from generator.site import Node, Site

PATH = ROOT / "sites/more/pair-qwen3-235b.yaml"
HUB = "home/nvidia/.cache/huggingface/hub/models--Qwen--Qwen3-235B-A22B-GPTQ-Int4"
DRIVER = "nvidia-smi --query-gpu=name,driver_version --format=csv,noheader"
COMPUTING = "nvidia-smi --query-compute-apps=pid,process_name --format=csv,noheader"
UP = "ActiveState=active\nSubState=running\nUnitFileState=enabled"
WAITING = "ActiveState=inactive\nSubState=dead\nUnitFileState=disabled"
SPEED = "\tSpeed: 200000Mb/s\n\tLink detected: yes\n"
# Its 22nd field is when it was started.
PROCESS = f"1 (python3) S {'0 ' * 18}100 0\n"
OF_IMAGE = "PATH=/usr/bin"
Mount = tuple[str, str]
STATIC = "ActiveState=inactive\nSubState=dead\nUnitFileState=static"
TICKING = "ActiveState=active\nSubState=waiting\nUnitFileState=static"
UNITS = "systemctl *"


def clean(valid: ValidReading) -> list[Machine]:
    """The nodes of a site, with what install.sh leaves on them and what then runs."""
    reading = valid.reading
    files = render(valid.site, reading.sha256, texts=reading.texts)
    tree = {path: file.text for path, file in files.items()}
    modes = {path: file.mode for path, file in files.items()}
    return [
        replace(running(valid.site, node, tree), modes=_of(modes, node))
        for node in valid.site.nodes
    ]


def nodes() -> list[Machine]:
    """The nodes of the site that the drifts are about."""
    return clean(valid_file(PATH))


def running(site: Site, node: Node, tree: Mapping[str, str]) -> Machine:
    """One node of it."""
    content = {p.partition("/")[2]: t for p, t in tree.items() if p.startswith(f"{node.name}/")}
    installed = machine(site, node, content)
    files = {
        **installed.files,
        "etc/dgx-release": 'DGX_OTA_VERSION="7.5.0"\n',
        "proc/cmdline": "BOOT_IMAGE=/boot/vmlinuz quiet\n",
    }
    first = node.interfaces[0].name if node.interfaces else "enp1s0f1np1"
    printed = {
        **installed.printed,
        UNITS: "\n".join(_units(site, node, content)),
        DRIVER: "NVIDIA GB10, 580.95.05\n",
        COMPUTING: "",
        "id *": "nvidia docker video\n",
        **{f"ethtool {one.name}": SPEED for one in node.interfaces},
        f"ethtool {first}": SPEED,
        "rdma link": "".join(
            f"link {one.hca}/1 state ACTIVE physical_state LINK_UP netdev {one.name}\n"
            for one in node.interfaces
        ),
        "uname -srm": "Linux 6.14.0-1010-nvidia aarch64\n",
        f"ethtool -i {first}": "driver: mlx5_core\nfirmware-version: 28.45.4028\n",
    }
    for name in (first, *(one.name for one in node.interfaces)):
        files[f"sys/class/net/{name}/mtu"] = "9000\n"
    files |= {f"proc/{pid}/stat": PROCESS for pid in installed.processes}
    files["proc/stat"] = "btime 4000000000\n"
    if rules := content.get("etc/sparkgen/firewall.rules"):
        own = [f"ufw {rule} comment 'sparkgen'" for rule in rules.splitlines() if rule[0] != "#"]
        policy = "Default: deny (incoming), allow (outgoing), disabled (routed)"
        printed["ufw *"] = "\n".join(["Status: active", policy, *own, ""])
    beside = [
        container
        for path, text in sorted(content.items())
        if path.endswith(".yaml") and "container_name:" in text
        if not path.endswith("/compose.yaml")
        for container in containers(yaml.safe_load(text), {}, [])
    ]
    builds = {part.engine.image: part.image_build for part, _ in site.parts_of(node.name)}
    runs = [
        replace(one, env=[*one.env, OF_IMAGE], image_env=[OF_IMAGE])
        for one in (*installed.containers, *beside)
    ]
    runs = [
        replace(one, build=build.inputs, image_id=f"sha256:{build.inputs}")
        if (build := builds.get(one.image))
        else one
        for one in runs
    ]
    return replace(installed, files=files, printed=printed, containers=runs)


def _of(modes: Mapping[str, int], node: Node) -> dict[str, int]:
    """The modes of the files that are installed on a node."""
    own = ((path.removeprefix(f"{node.name}/"), mode) for path, mode in modes.items())
    return {path: mode for path, mode in own if path.startswith(("etc/", "opt/"))}


def _units(site: Site, node: Node, content: Mapping[str, str]) -> Iterator[str]:
    """What systemd says of each unit; of those that take turns, the active one runs."""
    waiting = {p.unit for slot in site.slots_of(node.name) for p in slot if not p.is_active}
    for path, text in sorted(content.items()):
        name = path.rpartition("/")[2]
        if re.fullmatch(r"etc/systemd/system/sparkgen-[^/]*\.(service|timer)", path):
            state = UP if "[Install]" in text else TICKING if ".timer" in name else STATIC
            state = WAITING if name.removesuffix(".service") in waiting else state
            yield f"Id={name}\n{state}\nDropInPaths=\nNeedDaemonReload=no\n"


def with_file(path: str, old: str, new: str) -> Callable[[Machine], Machine]:
    return lambda node: replace(
        node, files={**node.files, path: node.files[path].replace(old, new)}
    )


def with_printed(line: str, old: str, new: str) -> Callable[[Machine], Machine]:
    return lambda node: replace(
        node, printed={**node.printed, line: node.printed[line].replace(old, new)}
    )


def with_links(change: Callable[[list[dict[str, object]]], object]) -> Callable[[Machine], Machine]:
    def changed(node: Machine) -> Machine:
        links = json.loads(node.printed["ip -j address"])
        change(links)
        return replace(node, printed={**node.printed, "ip -j address": json.dumps(links)})

    return changed


def with_engine(**more: object) -> Callable[[Machine], Machine]:
    def changed(node: Machine) -> Machine:
        engine, *rest = node.containers
        return replace(node, containers=[replace(engine, **more), *rest])  # type: ignore[arg-type]

    return changed


def with_command(old: str, new: str) -> Callable[[Machine], Machine]:
    def changed(node: Machine) -> Machine:
        engine, *rest = node.containers
        words = [word.replace(old, new) for word in engine.command]
        return replace(node, containers=[replace(engine, command=words), *rest])

    return changed


def with_variable(old: str, new: str) -> Callable[[Machine], Machine]:
    def changed(node: Machine) -> Machine:
        engine, *rest = node.containers
        env = [text.replace(old, new) for text in engine.env if text.replace(old, new)]
        return replace(node, containers=[replace(engine, env=env), *rest])

    return changed


def with_more(text: str) -> Callable[[Machine], Machine]:
    def changed(node: Machine) -> Machine:
        engine, *rest = node.containers
        return replace(node, containers=[replace(engine, env=[*engine.env, text]), *rest])

    return changed


def unit(state: str) -> Callable[[Machine], Machine]:
    shown = f"Id=sparkgen-engine.service\n{state}\nDropInPaths=\nNeedDaemonReload=no\n"
    return lambda node: replace(node, printed={**node.printed, UNITS: shown})


def of_file(path: str, text: str) -> Callable[[Machine], Machine]:
    return lambda node: replace(node, files={**node.files, path: text})


def without(path: str) -> Callable[[Machine], Machine]:
    return lambda node: replace(node, files={p: t for p, t in node.files.items() if p != path})


DRIFTS: dict[str, tuple[Callable[[Machine], Machine], list[str]]] = {
    "nothing": (lambda node: node, []),
    "nothing of the bundle": (
        lambda node: replace(
            node,
            files={p: t for p, t in node.files.items() if "sparkgen" not in p and "nccl" not in p},
            printed={line: t for line, t in node.printed.items() if line != UNITS},
            containers=(),
        ),
        [
            "SG865: spark1: there is no /etc/nccl.conf; run install.sh",
            "SG866: spark1: there is no unit sparkgen-engine.service; run install.sh",
        ],
    ),
    "unit and container gone": (
        lambda node: replace(
            node,
            files={p: t for p, t in node.files.items() if "systemd/system/sparkgen" not in p},
            printed={line: t for line, t in node.printed.items() if line != UNITS},
            containers=(),
        ),
        [
            "SG891: spark1: /etc/systemd/system/sparkgen-engine.service is missing since",
            "SG866: spark1: there is no unit sparkgen-engine.service; run install.sh",
        ],
    ),
    "no link": (
        with_links(
            lambda links: links.__setitem__(
                0, address(str(links[0]["ifname"]), "10.100.0.11/24", up=False, mtu=9000)
            )
        ),
        ["SG861: spark1: enp1s0f1np1 has no link; look at cable 1 at both ends"],
    ),
    "interface gone": (
        with_links(lambda links: links.pop(1)),
        ["SG861: spark1: there is no enP2p1s0f1np1; see that the cable is in"],
    ),
    "address added by another file": (
        with_links(
            lambda links: links.__setitem__(
                0, address("enp1s0f1np1", "10.100.0.11/24", "10.7.0.1/24", mtu=9000)
            )
        ),
        ["SG862: spark1: enp1s0f1np1 has another address, 10.7.0.1/24; see /etc/netplan"],
    ),
    "address lost, other MTU": (
        with_links(lambda links: links.__setitem__(0, address("enp1s0f1np1", "169.254.1.1/16"))),
        [
            "SG862: spark1: enp1s0f1np1 has no address 10.100.0.11/24: it has 169.254.1.1/16;",
            "SG862: spark1: enp1s0f1np1 has an MTU of 1500, and the bundle 9000;",
        ],
    ),
    "line of nccl.conf": (
        with_file("etc/nccl.conf", "NCCL_IB_DISABLE=0", "NCCL_IB_DISABLE=1"),
        ["SG865: spark1: NCCL_IB_DISABLE is 1 in /etc/nccl.conf, and 0 in the bundle;"],
    ),
    "variable of the process": (
        with_variable("NCCL_NET=IB", "NCCL_NET=Socket"),
        ["SG865: spark1: NCCL_NET is Socket in the running engine, and IB in the bundle;"],
    ),
    "variable that is gone": (
        with_variable("MASTER_ADDR=10.100.0.11", ""),
        ["SG865: spark1: the running engine has no MASTER_ADDR;"],
    ),
    "another variable of NCCL": (
        with_more("NCCL_PROTO=LL"),
        ["SG865: spark1: the running engine has NCCL_PROTO=LL, which the bundle does not set;"],
    ),
    "image": (
        with_engine(image="registry.lan/vllm-ray:0.20.0"),
        ["SG863: spark1: the engine runs registry.lan/vllm-ray:0.20.0, and the bundle says"],
    ),
    "image that was pulled later": (
        with_engine(layers=["sha256:" + "7" * 64], image_id="sha256:" + "7" * 64),
        ["SG867: registry.lan/vllm-ray:0.33.0, by its layers, differs: sha256:"],
    ),
    "model that moved": (
        lambda node: replace(
            node,
            files={
                **node.files,
                f"{HUB}/refs/main": "e5" * 20,
                f"{HUB}/snapshots/{'e5' * 20}/config.json": "{}",
            },
        ),
        [
            "SG867: Qwen/Qwen3-235B-A22B-GPTQ-Int4, revision main, differs: e5e5e5e5e5e5 on spark1;"
            " d4d4d4d4d4d4 on spark2; bring"
        ],
    ),
    "kernel": (
        with_printed("uname -srm", "6.14.0-1010", "6.17.0-1001"),
        ["SG867: the kernel differs: 6.17.0-1001-nvidia on spark1; 6.14.0-1010-nvidia on spark2;"],
    ),
    "container gone": (
        lambda node: replace(node, containers=node.containers[1:]),
        ["SG866: spark1: there is no container sparkgen-engine; journalctl -u sparkgen-engine"],
    ),
    "unit gone": (
        lambda node: replace(
            unit(UP)(node),
            printed={
                line: text.replace("sparkgen-engine", "docker")
                for line, text in unit(UP)(node).printed.items()
            },
        ),
        ["SG866: spark1: there is no unit sparkgen-engine.service; run install.sh"],
    ),
    "address that another file adds": (
        lambda node: with_links(
            lambda links: links.__setitem__(
                0, address("enp1s0f1np1", "10.100.0.11/24", "10.7.0.1/24", mtu=9000)
            )
        )(
            replace(
                node,
                files={
                    **node.files,
                    "etc/netplan/99-more.yaml": "network:\n  ethernets:\n"
                    "    enp1s0f1np1: {addresses: [10.7.0.1/24]}\n",
                },
            )
        ),
        [
            "SG862: spark1: enp1s0f1np1 has another address, 10.7.0.1/24; see /etc/netplan",
            "SG894: spark1: /etc/netplan/99-more.yaml configures enp1s0f1np1 too; remove",
        ],
    ),
    "command": (
        with_command("--max-num-seqs=8", "--max-num-seqs=16"),
        ["SG868: spark1: the engine runs without --max-num-seqs=8 and with --max-num-seqs=16;"],
    ),
    "unit that failed": (
        unit("ActiveState=failed\nSubState=failed\nUnitFileState=disabled"),
        [
            "SG866: spark1: sparkgen-engine.service is failed (failed); journalctl",
            "SG866: spark1: sparkgen-engine.service is not started at boot; systemctl enable",
        ],
    ),
    "model gone": (
        with_file(f"{HUB}/refs/main", COMMIT, ""),
        ["SG864: spark1: Qwen/Qwen3-235B-A22B-GPTQ-Int4, revision main, is not in the cache"],
    ),
    "driver": (
        with_printed(DRIVER, "580.95.05", "590.44.01"),
        ["SG867: the driver of the GPU differs: 590.44.01 on spark1; 580.95.05 on spark2; bring"],
    ),
    "firmware": (
        with_printed("ethtool -i enp1s0f1np1", "28.45.4028", "28.47.1088"),
        ["SG867: the firmware of the ConnectX-7 differs: 28.47.1088 on spark1; 28.45.4028 on"],
    ),
    "option of the kernel": (
        with_file("proc/cmdline", "quiet", "iommu.passthrough=1"),
        ["SG867: what the kernel is started with differs: iommu.passthrough=1 on spark1;"],
    ),
    "release": (
        with_file("etc/dgx-release", "7.5.0", "7.6.0"),
        ["SG867: the release of DGX OS differs: 7.6.0 on spark1; 7.5.0 on spark2; bring all"],
    ),
}


def with_state(unit: str, old: str, new: str) -> Callable[[Machine], Machine]:
    """A change of what systemd says of one unit."""

    def changed(node: Machine) -> Machine:
        blocks = node.printed[UNITS].split("\n\n")
        mine = [b.replace(old, new) if f"Id={unit}\n" in f"{b}\n" else b for b in blocks]
        return replace(node, printed={**node.printed, UNITS: "\n\n".join(mine)})

    return changed


def with_container(name: str, **more: object) -> Callable[[Machine], Machine]:
    """A change of one container; of none, it is gone."""

    def changed(node: Machine) -> Machine:
        found = [c if c.name != name else replace(c, **more) for c in node.containers]  # type: ignore[arg-type]
        return replace(node, containers=[c for c in found if more or c.name != name])

    return changed


def with_engine_mounts(
    change: Callable[[list[Mount]], list[Mount]],
) -> Callable[[Machine], Machine]:
    def changed(node: Machine) -> Machine:
        engine, *rest = node.containers
        return replace(node, containers=[replace(engine, mounts=change([*engine.mounts])), *rest])

    return changed


def of_another_build(path: str) -> Callable[[Machine], Machine]:
    """A file as another bundle had it, which was installed."""

    def changed(node: Machine) -> Machine:
        text = f"{node.files.get(path, '#')}\n# of another build\n"
        sums = [line for line in node.files[SUMS].splitlines() if not line.endswith(f"  {path}")]
        sums.append(f"{sha256(text.encode()).hexdigest()}  {path}")
        return replace(node, files={**node.files, path: text, SUMS: "\n".join(sums) + "\n"})

    return changed


def started_long_ago(node: Machine) -> Machine:
    early = [replace(c, started="2020-01-01T00:00:00Z") for c in node.containers]
    return replace(node, containers=early)


def with_mode(path: str, mode: int) -> Callable[[Machine], Machine]:
    return lambda node: replace(node, modes={**node.modes, path: mode})


def computing(line: str, pid: str, cgroup: str) -> Callable[[Machine], Machine]:
    """A process on the GPU, of a control group."""
    return lambda node: replace(
        node,
        files={**node.files, f"proc/{pid}/cgroup": f"0::{cgroup}\n"},
        printed={**node.printed, COMPUTING: line},
    )


def process_gone(node: Machine) -> Machine:
    return replace(node, processes={})


def with_environ(old: str, new: str) -> Callable[[Machine], Machine]:
    def changed(node: Machine) -> Machine:
        found = {
            pid: (words, [text.replace(old, new) for text in env])
            for pid, (words, env) in node.processes.items()
        }
        return replace(node, processes=found)

    return changed


def with_route(change: Callable[[list[dict[str, object]]], object]) -> Callable[[Machine], Machine]:
    def changed(node: Machine) -> Machine:
        routes = json.loads(node.printed["ip -j route"])
        change(routes)
        return replace(node, printed={**node.printed, "ip -j route": json.dumps(routes)})

    return changed


SUMS = "etc/sparkgen/bundle/SHA256SUMS"
GOLDEN = ROOT / "tests/golden"
SERVICES, CHAT = GOLDEN / "direct-services/site.yaml", ROOT / "sites/pair-chatbot.yaml"
GGUF = ROOT / "sites/more/pair-llamacpp.yaml"
TURNS, VENV = GOLDEN / "groups-alternatives/site.yaml", GOLDEN / "direct-venv/site.yaml"
RACK = ROOT / "sites/more/rack-switch.yaml"
BUILT = GOLDEN / "direct-image/site.yaml"
RING, GROUPS = GOLDEN / "ring-five-routes/site.yaml", ROOT / "sites/more/three-models.yaml"
FABRIC = "enp1s0f1np1"
# The site, what is changed on its first node, and how the finding about it begins.
MORE: dict[str, tuple[Path, Callable[[Machine], Machine], str]] = {
    "edited script": (
        PATH,
        with_file("opt/sparkgen/launch.sh", "set -", "# mine\nset -"),
        "SG891: spark1: /opt/sparkgen/launch.sh is edited since",
    ),
    "removed script": (
        PATH,
        without("opt/sparkgen/wait-fabric.sh"),
        "SG891: spark1: /opt/sparkgen/wait-fabric.sh is missing since",
    ),
    "edited environment": (
        PATH,
        with_file("etc/sparkgen/engine.env", "NCCL_", "# NCCL_"),
        "SG891: spark1: /etc/sparkgen/engine.env is edited",
    ),
    "edited Compose file": (
        PATH,
        with_file("opt/sparkgen/compose.yaml", "init: true", "init: false"),
        "SG891: spark1: /opt/sparkgen/compose.yaml is edited",
    ),
    "edited unit": (
        PATH,
        with_file("etc/systemd/system/sparkgen-engine.service", "[Unit]", "[Unit]\n# mine"),
        "SG891: spark1: /etc/systemd/system/sparkgen-engine.service is edited",
    ),
    "mode of netplan's file": (
        PATH,
        with_mode("etc/netplan/40-cx7.yaml", 0o644),
        "SG891: spark1: /etc/netplan/40-cx7.yaml has mode 0644",
    ),
    "script that can't run": (
        PATH,
        with_mode("opt/sparkgen/launch.sh", 0o644),
        "SG891: spark1: /opt/sparkgen/launch.sh has mode 0644",
    ),
    "another build": (
        PATH,
        of_another_build("opt/sparkgen/compose.yaml"),
        "SG890: spark1: not applied: /opt/sparkgen/compose.yaml;",
    ),
    "file of a dropped service": (
        PATH,
        of_another_build("opt/sparkgen/web-ui.yaml"),
        "SG890: spark1: not applied: /opt/sparkgen/web-ui.yaml;",
    ),
    "value of the kernel": (
        PATH,
        of_file(f"proc/sys/net/ipv4/conf/{FABRIC}/arp_ignore", "0\n"),
        f"SG893: spark1: net.ipv4.conf.{FABRIC}.arp_ignore is 0, and 1 in the bundle",
    ),
    "names of nodes gone": (
        PATH,
        of_file("etc/hosts", "127.0.0.1 localhost\n"),
        "SG893: spark1: /etc/hosts has other names",
    ),
    "another address of a name": (
        PATH,
        with_file("etc/hosts", "10.100.0.12", "10.100.0.13"),
        "SG893: spark1: /etc/hosts has other names",
    ),
    "drop-in": (
        PATH,
        with_state(
            "sparkgen-engine.service",
            "DropInPaths=",
            "DropInPaths=/etc/systemd/system/sparkgen-engine.service.d/override.conf",
        ),
        "SG891: spark1: sparkgen-engine.service is changed by /etc/systemd/system/",
    ),
    "unit that systemd has not read": (
        PATH,
        with_state("sparkgen-engine.service", "NeedDaemonReload=no", "NeedDaemonReload=yes"),
        "SG892: spark1: applied, not restarted: systemd has not read sparkgen-engine.service",
    ),
    "masked unit": (
        PATH,
        with_state("sparkgen-engine.service", "=enabled", "=masked"),
        "SG866: spark1: sparkgen-engine.service is not started at boot",
    ),
    "disabled unit": (
        PATH,
        with_state("sparkgen-engine.service", "=enabled", "=disabled"),
        "SG866: spark1: sparkgen-engine.service is not started at boot",
    ),
    "engine stopped": (
        PATH,
        with_state("sparkgen-engine.service", "=active", "=inactive"),
        "SG866: spark1: sparkgen-engine.service is inactive",
    ),
    "not restarted": (
        PATH,
        started_long_ago,
        "SG892: spark1: applied, not restarted: sparkgen-engine was started before",
    ),
    "another process on the GPU": (
        PATH,
        computing("4242, /usr/bin/python3\n", "4242", "/user.slice/session-3.scope"),
        "SG894: spark1: python3 computes on the GPU too",
    ),
    "another container on the GPU": (
        PATH,
        computing("4242, ollama\n", "4242", f"/system.slice/docker-{'e' * 64}.scope"),
        "SG894: spark1: ollama of eeeeeeeeeeee computes on the GPU too",
    ),
    "another unit on the GPU": (
        PATH,
        computing("4242, ollama\n", "4242", "/system.slice/ollama.service"),
        "SG894: spark1: ollama of ollama.service computes on the GPU too",
    ),
    "netplan's file of others": (
        PATH,
        of_file(
            "etc/netplan/99-mine.yaml",
            f"network:\n  ethernets:\n    {FABRIC}:\n      mtu: 1500\n",
        ),
        f"SG894: spark1: /etc/netplan/99-mine.yaml configures {FABRIC} too",
    ),
    "networkd's file of others": (
        PATH,
        of_file("etc/systemd/network/10-mine.network", f"[Match]\nName={FABRIC}\n"),
        f"SG894: spark1: /etc/systemd/network/10-mine.network configures {FABRIC} too",
    ),
    "NetworkManager's profile": (
        PATH,
        of_file(
            "etc/NetworkManager/system-connections/fabric.nmconnection",
            f"[connection]\ntype=ethernet\ninterface-name={FABRIC}\n",
        ),
        "SG894: spark1: /etc/NetworkManager/system-connections/fabric.nmconnection configures",
    ),
    "mount that is gone": (
        PATH,
        with_engine_mounts(lambda mounts: mounts[1:]),
        "SG868: spark1: sparkgen-engine runs without the mount /",
    ),
    "mount of others": (
        PATH,
        with_engine_mounts(lambda mounts: [*mounts, ("/srv/other", "/models")]),
        "SG868: spark1: sparkgen-engine runs with the mount /srv/other /models true",
    ),
    "entrypoint": (
        PATH,
        with_engine(entrypoint=["env"]),
        "SG868: spark1: the engine runs",
    ),
    "container's memory": (
        PATH,
        with_engine(memory=64 << 30),
        "SG868: spark1: sparkgen-engine runs with mem_limit 68719476736, not 0;",
    ),
    "container's /dev/shm": (
        PATH,
        with_engine(shm=64 << 20),
        "SG868: spark1: sparkgen-engine runs with shm_size 67108864, not 17179869184;",
    ),
    "container's processors": (
        PATH,
        with_engine(cpus="0-3"),
        "SG868: spark1: sparkgen-engine runs with cpuset 0-3, not none;",
    ),
    "container that is privileged": (
        PATH,
        with_engine(privileged=True),
        "SG868: spark1: sparkgen-engine runs with privileged true, not false;",
    ),
    "container's network": (
        PATH,
        with_engine(network="bridge"),
        "SG868: spark1: sparkgen-engine runs with network_mode bridge, not host;",
    ),
    "container with the node's processes": (
        PATH,
        with_engine(pid="host"),
        "SG868: spark1: sparkgen-engine runs with pid host, not none;",
    ),
    "container that Docker restarts": (
        PATH,
        with_engine(restart="always"),
        "SG868: spark1: sparkgen-engine runs with restart always, not no;",
    ),
    "container without init": (
        PATH,
        with_engine(init=False),
        "SG868: spark1: sparkgen-engine runs with init false, not true;",
    ),
    "container without RDMA": (
        PATH,
        with_engine(devices=()),
        "SG868: spark1: sparkgen-engine runs without the device /dev/infiniband;",
    ),
    "container without its capability": (
        PATH,
        with_engine(capabilities=()),
        "SG868: spark1: sparkgen-engine runs without the cap-add IPC_LOCK;",
    ),
    "container with another capability": (
        PATH,
        with_engine(capabilities=("CAP_IPC_LOCK", "CAP_SYS_ADMIN")),
        "SG868: spark1: sparkgen-engine runs with the cap-add SYS_ADMIN;",
    ),
    "container's locked memory": (
        PATH,
        with_engine(ulimits={"memlock": 65536, "stack": 67108864, "nofile": 1048576}),
        "SG868: spark1: sparkgen-engine runs with",
    ),
    "mount that is writable": (
        PATH,
        with_engine_mounts(lambda mounts: [(*mounts[0][:2], True), *mounts[1:]]),
        "SG868: spark1: sparkgen-engine runs with",
    ),
    "page without its limit": (
        CHAT,
        with_container("sparkgen-web-ui", memory=0),
        "SG868: spark1: sparkgen-web-ui runs with mem_limit 0, not 4294967296;",
    ),
    "model that is cut off": (
        PATH,
        with_printed(DISK, "999999999", "99999999"),
        "SG864: spark1: Qwen/Qwen3-235B-A22B-GPTQ-Int4 has 102.4 GB there, and its weights at",
    ),
    "file of weights gone": (
        GGUF,
        without("srv/models/qwen3-235b/Qwen3-235B-A22B-Instruct-2507-Q4_K_M-00002-of-00003.gguf"),
        "SG864: spark1: there is no /srv/models/qwen3-235b/Qwen3-235B-A22B-Instruct-2507-Q4_K_M-0",
    ),
    "groups of the user": (
        PATH,
        with_printed("id *", " video", ""),
        "SG867: what the user is a member of differs: docker, nvidia on spark1; docker, nvidia, v",
    ),
    "nccl.conf gone": (
        PATH,
        without("etc/nccl.conf"),
        "SG865: spark1: there is no /etc/nccl.conf",
    ),
    "another line of nccl.conf": (
        PATH,
        with_file("etc/nccl.conf", "NCCL_IB_DISABLE=0", "NCCL_IB_DISABLE=0\nNCCL_ALGO=Ring"),
        "SG865: spark1: /etc/nccl.conf has NCCL_ALGO=Ring",
    ),
    "MTU alone": (
        PATH,
        with_links(lambda links: links[0].__setitem__("mtu", 1500)),
        f"SG862: spark1: {FABRIC} has an MTU of 1500",
    ),
    "second half without a link": (
        PATH,
        with_links(lambda links: links[1].update(flags=["NO-CARRIER", "UP"], operstate="DOWN")),
        "SG861: spark1: enP2p1s0f1np1 has no link",
    ),
    "firewall off": (
        SERVICES,
        lambda node: replace(node, printed={**node.printed, "ufw *": "Status: inactive\n"}),
        "SG893: spark1: the firewall is off",
    ),
    "rule that is gone": (
        SERVICES,
        with_printed("ufw *", "ufw allow in on", "ufw allow in on other0 from 10.9.0.0/24\n#"),
        "SG893: spark1: the firewall lacks 'allow in on",
    ),
    "exporters stopped": (
        SERVICES,
        with_state("sparkgen-monitoring.service", "=active", "=inactive"),
        "SG866: spark1: sparkgen-monitoring.service is inactive",
    ),
    "guard failed": (
        SERVICES,
        with_state("sparkgen-guard.service", "=active", "=failed"),
        "SG866: spark1: sparkgen-guard.service is failed",
    ),
    "edited rules of the firewall": (
        SERVICES,
        with_file("etc/sparkgen/firewall.rules", "allow in on", "allow in on any0\nallow in on"),
        "SG891: spark1: /etc/sparkgen/firewall.rules is edited",
    ),
    "page gone": (
        CHAT,
        with_container("sparkgen-web-ui"),
        "SG866: spark1: there is no container sparkgen-web-ui",
    ),
    "page of another image": (
        CHAT,
        with_container("sparkgen-web-ui", image="ghcr.io/open-webui/open-webui:v0.1"),
        "SG863: spark1: sparkgen-web-ui runs ghcr.io/open-webui/open-webui:v0.1, and",
    ),
    "page not restarted": (
        CHAT,
        with_container("sparkgen-web-ui", started="2020-01-01T00:00:00Z"),
        "SG892: spark1: applied, not restarted: sparkgen-web-ui was started before",
    ),
    "unit of the page stopped": (
        CHAT,
        with_state("sparkgen-web-ui.service", "=active", "=inactive"),
        "SG866: spark1: sparkgen-web-ui.service is inactive",
    ),
    "waiting unit enabled": (
        TURNS,
        with_printed(UNITS, "=disabled", "=enabled"),
        "SG866: spark1: sparkgen-engine-",
    ),
    "route gone": (
        RING,
        with_route(lambda routes: routes.pop(0)),
        "SG893: spark1: there is no route to 10.",
    ),
    "route by another way": (
        RING,
        with_route(lambda routes: routes[0].__setitem__("gateway", "10.9.9.9")),
        "SG893: spark1: there is no route to 10.",
    ),
    "route to the fabric by another way": (
        PATH,
        with_route(lambda routes: routes.append({"dst": "10.100.0.12", "dev": "enP7s7"})),
        "SG893: spark1: 10.100.0.12 is reached by enP7s7 too",
    ),
    "all other traffic over the fabric": (
        PATH,
        with_route(lambda routes: routes.append({"dst": "default", "dev": FABRIC, "metric": 50})),
        f"SG893: spark1: what goes to other networks leaves by {FABRIC}",
    ),
    "rule that refuses in place of ours": (
        SERVICES,
        with_printed("ufw *", "ufw allow in on", "ufw deny in on"),
        "SG893: spark1: the firewall lacks 'allow in on",
    ),
    "netplan's file until the next start": (
        PATH,
        of_file("run/netplan/90-try.yaml", f"network: {{ethernets: {{{FABRIC}: {{mtu: 1500}}}}}}"),
        f"SG894: spark1: /run/netplan/90-try.yaml configures {FABRIC} too",
    ),
    "drop-in of networkd": (
        PATH,
        of_file(
            f"etc/systemd/network/10-netplan-{FABRIC}.network.d/mtu.conf", "[Link]\nMTUBytes=1500\n"
        ),
        f"SG894: spark1: /etc/systemd/network/10-netplan-{FABRIC}.network.d/mtu.conf configures",
    ),
    "link file of networkd": (
        PATH,
        of_file("etc/systemd/network/10-mine.link", f"[Match]\nOriginalName={FABRIC}\n"),
        f"SG894: spark1: /etc/systemd/network/10-mine.link configures {FABRIC} too",
    ),
    "unit that fails again and again": (
        PATH,
        with_state(
            "sparkgen-engine.service",
            "=active\nSubState=running",
            "=activating\nSubState=auto-restart",
        ),
        "SG866: spark1: sparkgen-engine.service is activating (auto-restart)",
    ),
    "timer stopped": (
        RACK,
        with_state("sparkgen-verify.timer", "=active", "=inactive"),
        "SG866: spark1: sparkgen-verify.timer is inactive",
    ),
    "image of another build": (
        BUILT,
        with_container("sparkgen-engine", build="0" * 64),
        "SG863: spark1: vllm-own:1 is not what the site builds; run build.sh",
    ),
    "process gone": (VENV, process_gone, "SG866: spark1: there is no process of sparkgen-engine"),
    "variable of a process": (
        VENV,
        with_environ("NCCL_NET=IB", "NCCL_NET=Socket"),
        "SG865: spark1: NCCL_NET is Socket in the running engine",
    ),
    "engine of a group gone": (
        GROUPS,
        lambda node: replace(node, containers=node.containers[1:]),
        "SG866: spark1: there is no container sparkgen-engine-",
    ),
}
