"""`check --live`: compares captured nodes with their site, sorted by what a difference means."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from captured_nodes import Machine, address
from conftest import Command
from test_import import machine
from valid_sites import valid_file

from generator.bundle.render import render
from generator.resources import ROOT
from generator.site import Site

PATH = ROOT / "sites/pair-qwen3-235b.yaml"
UP = "ActiveState=active\nSubState=running\nUnitFileState=enabled"
HUB = "home/nvidia/.cache/huggingface/hub/models--Qwen--Qwen3-235B-A22B-GPTQ-Int4"
DRIVER = "nvidia-smi --query-gpu=name,driver_version --format=csv,noheader"
COMMIT = "d4" * 20
UNITS = (
    "systemctl show --property=Id,ActiveState,SubState,UnitFileState,NRestarts"
    " sparkgen-engine.service docker.service NetworkManager.service systemd-networkd.service"
    " earlyoom.service"
)


def nodes() -> list[Machine]:
    """The nodes of a site, in the state that its bundle describes."""
    site = valid_file(PATH).site
    tree = {path: file.text for path, file in render(site, "0" * 64).items()}
    return [running(site, index, tree) for index in range(len(site.nodes))]


def running(site: Site, index: int, tree: dict[str, str]) -> Machine:
    node = site.nodes[index]
    content = {p.partition("/")[2]: t for p, t in tree.items() if p.startswith(f"{node.name}/")}
    installed = machine(site, node, content)
    files = {
        **installed.files,
        f"{HUB}/refs/main": COMMIT,
        f"{HUB}/snapshots/{COMMIT}/config.json": "{}",
        "sys/class/net/enp1s0f1np1/mtu": "9000\n",
        "etc/dgx-release": 'DGX_OTA_VERSION="7.5.0"\n',
    }
    printed = {
        **installed.printed,
        UNITS: f"Id=sparkgen-engine.service\n{UP}\n",
        DRIVER: "NVIDIA GB10, 580.95.05\n",
        "ethtool enp1s0f1np1": "\tSpeed: 200000Mb/s\n\tLink detected: yes\n",
        "uname -srm": "Linux 6.14.0-1010-nvidia aarch64\n",
        "ethtool -i enp1s0f1np1": "driver: mlx5_core\nfirmware-version: 28.45.4028\n",
    }
    return replace(installed, files=files, printed=printed)


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
    shown = f"Id=sparkgen-engine.service\n{state}\n"
    return lambda node: replace(node, printed={**node.printed, UNITS: shown})


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
        ["SG866: spark1: there is no unit sparkgen-engine.service; run install.sh"],
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
        ["SG865: spark1: the running engine has NCCL_PROTO=LL, which the bundle has not;"],
    ),
    "image": (
        with_engine(image="registry.lan/vllm-ray:0.20.0"),
        ["SG863: spark1: the engine runs registry.lan/vllm-ray:0.20.0, and the bundle says"],
    ),
    "image that was pulled later": (
        with_engine(layers=["sha256:" + "7" * 64], image_id="sha256:" + "7" * 64),
        ["SG867: registry.lan/vllm-ray:0.19.0, by its layers, differs: sha256:"],
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
            "SG862: spark1: enp1s0f1np1 has another address, 10.7.0.1/24; it is in "
            "/etc/netplan/99-more.yaml: netplan adds up"
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
    "release": (
        with_file("etc/dgx-release", "7.5.0", "7.6.0"),
        ["SG867: the release of DGX OS differs: 7.6.0 on spark1; 7.5.0 on spark2; bring all"],
    ),
}


NO_UNITS = ["spark1: not captured: the state of its units"]
# What a capture does not show.
LACKING = {
    "nothing of the bundle": NO_UNITS,
    "unit and container gone": NO_UNITS,
}


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The other node, without any difference."""
    return nodes()[1].capture(tmp_path_factory.mktemp("second"))


@pytest.mark.parametrize("name", DRIFTS)
def test_drift_of_a_node(name: str, second: Path, sparkgen: Command, tmp_path: Path) -> None:
    change, expected = DRIFTS[name]
    first = change(nodes()[0]).capture(tmp_path)
    outcome = sparkgen("check", PATH, "--live", first, second, cwd=tmp_path)
    lines = outcome.out.splitlines()
    # As long as something is not compared, nobody may rely on the status.
    assert outcome.code == 1
    *lacking, never = outcome.err.splitlines()
    assert never.startswith("not compared on any node: files other than nccl.conf and units,")
    assert lacking == LACKING.get(name, [])
    if not expected:
        assert lines == ["pair-qwen3-235b: nothing that was compared differs"]
        return
    assert len(lines) == len(expected), outcome.out
    for line, start in zip(lines, expected, strict=True):
        assert line.startswith(start)


def test_each_node_has_to_be_captured(second: Path, sparkgen: Command, tmp_path: Path) -> None:
    outcome = sparkgen("check", PATH, "--live", second, cwd=tmp_path)
    assert outcome.code == 1
    assert outcome.err.splitlines()[0] == "spark1 is not captured"
    assert outcome.out == "pair-qwen3-235b: nothing that was compared differs\n"


def test_what_is_locked(second: Path, sparkgen: Command, tmp_path: Path) -> None:
    site = tmp_path / PATH.name
    site.write_bytes(PATH.read_bytes())
    lock = tmp_path / "pair-qwen3-235b.lock.yaml"
    lock.write_text(
        "version: 1\nimages:\n  - image: registry.lan/vllm-ray:0.19.0\n"
        f"    layers: sha256:{'0' * 64}\nmodels:\n"
        f"  - {{source: Qwen/Qwen3-235B-A22B-GPTQ-Int4, revision: main, commit: {'e5' * 20}}}\n"
    )
    outcome = sparkgen("check", site, "--live", second, "--format", "json", cwd=tmp_path)
    data = json.loads(outcome.out)
    assert (outcome.code, data["missing"]) == (1, ["spark1"])
    assert [finding["rule"] for finding in data["findings"]] == ["SG863", "SG864"]
    assert data["findings"][1]["message"].startswith("spark2: Qwen/Qwen3-235B-A22B-GPTQ-Int4 is at")


def test_node_of_another_site(second: Path, sparkgen: Command, tmp_path: Path) -> None:
    outcome = sparkgen("check", ROOT / "sites/single.yaml", "--live", second, cwd=tmp_path)
    assert outcome.code == 1
    assert outcome.out.startswith("SG860: spark2 is not a node of single; its nodes are spark")


def test_two_captures_of_one_node(second: Path, sparkgen: Command, tmp_path: Path) -> None:
    outcome = sparkgen("check", PATH, "--live", second, second, cwd=tmp_path)
    assert (outcome.code, outcome.out) == (3, "")
    assert outcome.err.startswith("error[SG830]: there are two captures of spark2\n")


@pytest.mark.parametrize("words", [[PATH], ["a.yaml", "b.yaml", "c.tar.gz"], ["c.tar.gz"]])
def test_wrong_usage(words: list[object], sparkgen: Command, tmp_path: Path) -> None:
    assert sparkgen("check", *words, "--live", cwd=tmp_path).code == 2
