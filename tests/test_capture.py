"""`capture.sh`: what it collects from a node, what it omits, and which archives are rejected."""

import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import tarfile
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from captured_nodes import SCRIPT, Container, Machine, address
from conftest import Command
from docker_client import engine
from programs import require
from waiting import PATIENCE

from generator.capture import CaptureError
from generator.capture.archive import read

# One secret for each form in which secrets occur on a node, named after the place.
FORMS = [
    "flag-apart",
    "flag-equals",
    "flag-admin",
    "flag-ssl",
    "flag-hf",
    "flag-redis",
    "flag-short",
    "flag-unknown",
    "flag-comment",
    "flag-underscores",
    "flag-json-key",
    "flag-known-name",
    "url-userinfo",
    "url-query",
    "shell-export",
    "shell-prefix",
    "shell-header",
    "shell-flag",
    "shell-quoted",
    "env-token",
    "env-password",
    "env-family",
    "env-known",
    "env-url",
    "env-unknown",
    "env-json",
    "env-newline",
    "env-name",
    "process-arg",
    "process-env",
    "unit-environment",
    "unit-exec",
    "unit-docker",
    "unit-comment",
    "nccl-comment",
    "nccl-other",
    "netplan-wifi",
    "netplan-auth",
    "netplan-tunnel",
    "netplan-comment",
    "netplan-flow",
    "nm-wifi",
    "nm-vpn",
    "networkd-wireguard",
    "cache-token",
    "release-serial",
    "image-env",
    "label-positional",
    "lldp-text",
    "flag-after-value",
    "flag-template",
    "shell-login",
    "shell-short",
    "shell-short-header",
    "env-blank",
    "env-random",
    "unit-own-key",
    "unit-quoted",
    "unit-label",
    "unit-other-program",
    "nm-address",
    "nccl-behind",
    "other-container",
    # Further forms, within text that is otherwise kept.
    "query-signature",
    "query-key",
    "proxy-env",
    "image-login",
    "share-login",
    "mount-token",
    "mount-option",
    "log-token",
    "log-login",
    "basic",
    "cookie",
    "tailscale",
    "vault",
    "stripe",
    "groq",
    "base64",
    "base64-padded",
    "wireguard-known",
    "hex",
    "json-nested",
    "json-remote",
    "json-overrides",
    "json-lora",
    "json-escaped",
    "template-text",
    "lora-url",
    "draft-url",
    "cache-url",
    "cache-query",
    "default-in-shell",
    "sourced",
    "piped-login",
    "python-inline",
    "trailing-comment",
    "container-name",
    "environ-other",
    "process-curl",
    "process-script",
    "credential",
    "dropin-proxy",
    "unit-expanded",
    "unit-env-continued",
    "unit-shell",
    "unit-curl",
    "nccl-family",
    "nccl-exported",
    "nccl-bare",
    "netplan-search",
    "netplan-block",
    "netplan-list",
    "netplan-hostname",
    "netplan-quoted-key",
    "nm-legacy-wifi",
    "nm-8021x",
    "nm-proxy",
    "nm-identifier",
    "networkd-token",
    "networkd-netdev",
    "interface-alias",
    "netrc",
    "docker-config",
    "git-remote",
    "shell-history",
    "dotenv",
]


def secret(form: str) -> str:
    """A unique secret that has no recognizable shape, in lower case like an ordinary word."""
    plain = f"zq{form.replace('-', '')}zq"
    if form == "hex":
        return form.encode().hex() * 8
    return plain if form not in ("env-random", "base64") else f"{plain}A1b2C3d4E5"


S = {form: secret(form) for form in FORMS}

HOSTILE = Container(
    name="engine",
    image="vllm/vllm-openai:v0.33.0",
    command=[
        *("serve", "openai/gpt-oss-120b", "--port", "8000", "--max-model-len=65536"),
        *("--api-key", S["flag-apart"], S["label-positional"], f"--api-key={S['flag-equals']}"),
        *("--admin-api-key", S["flag-admin"], f"--ssl-keyfile-password={S['flag-ssl']}"),
        *("--hf_token", S["flag-hf"], f"--redis-password={S['flag-redis']}", "-k", S["flag-short"]),
        *("--max-num-seqs", "8", S["flag-after-value"]),
        *("--chat-template", f'{{{{ "{S["flag-template"]}" }}}}'),
        *("--chat-template", f"{{# {S['flag-comment']} #}}"),
        *("--our-new-flag", S["flag-unknown"], f"--api_key={S['flag-underscores']}"),
        *("--speculative-config", json.dumps({"method": "mtp", "api_key": S["flag-json-key"]})),
        *("--served-model-name", f"hf_{S['flag-known-name']}"),
        *("--model", f"https://me:{S['url-userinfo']}@example.org/model"),
        *("--otlp-traces-endpoint", f"http://a/?token={S['url-query']}"),
    ],
    entrypoint=["vllm"],
    env=[
        "NCCL_IB_HCA=rocep1s0f0,roceP2p1s0f0",
        f"HF_TOKEN={S['env-token']}",
        f"PASSWORD={S['env-password']}",
        f"NCCL_AUTH_TOKEN={S['env-family']}",
        f"NCCL_DEBUG=sk-{S['env-known']}",
        f"HF_HOME=http://me:{S['env-url']}@host/",
        f"SOMETHING={S['env-unknown']}",
        f'VLLM_USE_X={{"secret": "{S["env-json"]}"}}',
        f"SOMETHING_LONG=first\n{S['env-newline']}",
        f"hf_{S['env-name']}=x",
        f"NCCL_X=token {S['env-blank']}",
        f"TRITON_X={S['env-random']}",
    ],
    image_env=[f"REGISTRY_PASS={S['image-env']}", "CUDA_VERSION=13.0"],
)
SHELL = Container(
    name="shell",
    image_id="sha256:" + "2" * 64,
    image="vllm/vllm-openai:v0.33.0",
    entrypoint=["bash"],
    command=[
        "-lc",
        f"curl -u me:{S['shell-login']} -H 'X-Key: {S['shell-short-header']}' http://host; "
        f"sshpass -p {S['shell-short']} ssh host true && "
        f"export HF_TOKEN={S['shell-export']}; OTHER={S['shell-prefix']} vllm serve a/b --port 8000"
        f" && curl -H 'Authorization: Bearer {S['shell-header']}' --api-key {S['shell-flag']}"
        f' --api-key "a b {S["shell-quoted"]}"',
    ],
)
OTHER = Container(
    name="cache",
    image_id="sha256:" + "3" * 64,
    image="redis:7",
    entrypoint=["redis-server"],
    command=["--requirepass", S["other-container"], "--port", "6379"],
)
_TRANSFER = {
    "kv_connector": "LMCacheConnectorV1",
    "kv_connector_extra_config": {"root_dir": f"redis://:{S['json-remote']}@host"},
}
MORE = Container(
    name=f"run-tskey-{S['container-name']}",
    image_id="sha256:" + "4" * 64,
    image="vllm/vllm-openai:v0.33.0",
    entrypoint=["vllm"],
    command=[
        *("serve", "openai/gpt-oss-20b", "--port", "8001"),
        *("--tokenizer", f"https://host/a?X-Amz-Signature={S['query-signature']}"),
        *("--download-dir", f"https://host/a?key={S['query-key']}"),
        *("--revision", f"tskey-auth-{S['tailscale']}", "--runner", f"hvs.{S['vault']}"),
        *("--load-format", f"sk_live_{S['stripe']}", "--dtype", f"gsk_{S['groq']}"),
        *("--attention-backend", f"Basic {S['basic']}", "--device", f"cookie:{S['cookie']}"),
        *(
            "--seed",
            f"{S['base64-padded']}ab/cd+ef==",
            "--host",
            f"{'k' * 28}{S['wireguard-known']}=",
        ),
        *("--block-size", S["hex"]),
        *("--hf-overrides", json.dumps({"rope_scaling": {"token": S["json-overrides"]}})),
        *("--model-loader-extra-config", json.dumps({"distributed": {"secret": S["json-nested"]}})),
        *("--kv-transfer-config", json.dumps(_TRANSFER)),
        *("--lora-modules", json.dumps({"name": "a", "path": S["json-lora"]})),
        *("--compilation-config", f'{{"level": 3, "x\\"": "{S["json-escaped"]}"}}'),
        *("--chat-template", f"Say {S['template-text']} to nobody"),
        *("--served-model-name", f"a=https://me:{S['lora-url']}@host/lora"),
        "--speculative-config",
        json.dumps({"method": "mtp", "model": f"https://me:{S['draft-url']}@host/x"}),
    ],
    env=[
        f"HTTPS_PROXY=http://me:{S['proxy-env']}@proxy:3128",
        f"IMAGE=me:{S['image-login']}@registry.example.org/vllm",
        f"LMCACHE_REMOTE_URL=redis://:{S['cache-url']}@host:6379",
        f"LMCACHE_LOCAL_DISK=https://host/a?sig={S['cache-query']}",
        f"NCCL_NET_PLUGIN={S['base64']}",
    ],
    mounts=[
        (f"//me:{S['share-login']}@nas/models", "/models"),
        (f"/mnt/token={S['mount-token']}", "/token"),
    ],
)
SCRIPTED = Container(
    name="scripted",
    image_id="sha256:" + "5" * 64,
    image="vllm/vllm-openai:v0.33.0",
    entrypoint=["bash", "-c"],
    command=[
        f"echo {S['piped-login']} | docker login -u me --password-stdin; "
        f". /run/{S['sourced']}.env; python3 -c 'key = \"{S['python-inline']}\"'; "
        f"vllm serve a/b --port 8000 --seed ${{SEED:-sk-{S['default-in-shell']}}} "
        f"# {S['trailing-comment']}",
    ],
)
FILES: Mapping[str, str] = {
    "etc/systemd/system/engine.service": f"""\
[Unit]
Description=serves; key {S["unit-comment"]}
# {S["unit-comment"]}
[Service]
Environment="A=1" OPENAI_API_KEY={S["unit-environment"]} 'B=a {S["unit-quoted"]}'
X-Own={S["unit-own-key"]}
ExecStartPre=/usr/bin/tailscale up --authkey {S["unit-other-program"]}
ExecStart=/usr/bin/docker run --rm -l a={S["unit-label"]} -e HF_TOKEN={S["unit-docker"]} \\
  --network host vllm/vllm-openai:v0.33.0 serve a/b --api-key "{S["unit-exec"]}" \\
  --port 8000
Restart=always
""",
    "etc/nccl.conf": f"# {S['nccl-comment']}\nNCCL_NET = IB\nMY_KEY={S['nccl-other']}\n"
    f"NCCL_DEBUG=INFO # {S['nccl-behind']}\n",
    "etc/netplan/40-cx7.yaml": f"""\
# {S["netplan-comment"]}
network:
  version: 2
  ethernets:
    enp1s0f0np0:
      addresses: [192.168.100.12/24]  # {S["netplan-comment"]}
      mtu: 9000
      auth:
        password: {S["netplan-auth"]}
    enP7s7: {{dhcp4: true, auth: {{password: {S["netplan-flow"]}}}}}
  wifis:
    wlP9s9:
      access-points:
        home: {{password: {S["netplan-wifi"]}}}
  tunnels:
    wg0:
      key: {S["netplan-tunnel"]}
""",
    "etc/NetworkManager/system-connections/home.nmconnection": "[connection]\ntype=wifi\n"
    f"interface-name=en1\n[wifi-security]\npsk={S['nm-wifi']}\n",
    "etc/NetworkManager/system-connections/work.nmconnection": "[connection]\ntype=vpn\n"
    f"interface-name=enP7s7\n[vpn-secrets]\npassword={S['nm-vpn']}\n",
    "etc/NetworkManager/system-connections/cx7.nmconnection": "[connection]\ntype=ethernet\n"
    "interface-name=enp1s0f0np0\n[ipv4]\naddress1=192.168.100.12/24,192.168.100.1\n"
    f"address2={S['nm-address']}\nmethod=manual\n",
    "etc/systemd/network/wg0.network": f"[Match]\nName=wg0\n[X]\nKey={S['networkd-wireguard']}\n",
    "etc/systemd/system/vllm-more.service": f"""\
[Service]
LoadCredential=token:/run/{S["credential"]}
Environment=NCCL_NET=IB \\
  OWN_TOKEN={S["unit-env-continued"]}
ExecStartPre=/bin/sh -c 'KEY={S["unit-shell"]} docker pull vllm/vllm-openai:v0.33.0'
ExecStart=/usr/bin/docker run --mount type=volume,volume-opt=o=password={S["mount-option"]} \\
  --log-opt splunk-token={S["log-token"]} --log-opt gelf-address=udp://me:{S["log-login"]}@host \\
  vllm/vllm-openai:v0.33.0 --api-key ${{KEY:-{S["unit-expanded"]}}} --port 8000
ExecStartPost=/usr/bin/curl -H "Authorization: Bearer {S["unit-curl"]}" http://host/vllm
""",
    "etc/systemd/system/docker.service.d/proxy.conf": "[Service]\n"
    f"Environment=HTTP_PROXY=http://me:{S['dropin-proxy']}@proxy\n",
    "home/me/.nccl.conf": f"NCCL_OWN_SECRET={S['nccl-family']}\n"
    f"export NCCL_X=npm_{S['nccl-exported']}\n{S['nccl-bare']}\n",
    "etc/netplan/50-more.yaml": f"""\
network:
  ethernets:
    enP7s7:
      nameservers: {{search: [{S["netplan-search"]}]}}
      dhcp4-overrides: {{hostname: {S["netplan-hostname"]}}}
      "auth": {{"password": "{S["netplan-quoted-key"]}"}}
      addresses:
        - 10.0.0.12/24
        - {S["netplan-list"]}
      label: |
        {S["netplan-block"]}
""",
    "etc/NetworkManager/system-connections/old.nmconnection": "[connection]\n"
    "type=802-11-wireless\ninterface-name=enx1\n"
    f"[802-11-wireless-security]\npsk={S['nm-legacy-wifi']}\n",
    "etc/NetworkManager/system-connections/port.nmconnection": "[connection]\n"
    f"id={S['nm-identifier']}\ntype=ethernet\ninterface-name=enP7s7\n"
    f"[proxy]\npac-url=http://me:{S['nm-proxy']}@host\n[802-1x-own]\npassword={S['nm-8021x']}\n",
    "etc/systemd/network/cx7.network": "[Match]\nName=enp1s0f0np0\n[IPv6AcceptRA]\n"
    f"Token={S['networkd-token']}\n",
    "etc/systemd/network/wg1.netdev": f"[WireGuard]\nPrivateKey={S['networkd-netdev']}\n",
    "home/me/.netrc": f"machine huggingface.co login me password {S['netrc']}\n",
    "home/me/.docker/config.json": json.dumps({"auths": {"nvcr.io": {"auth": S["docker-config"]}}}),
    "home/me/own/.git/config": f"[remote]\nurl = https://me:{S['git-remote']}@github.com/a/b\n",
    "home/me/.bash_history": f"export HF_TOKEN={S['shell-history']}; vllm serve a/b\n",
    "home/me/vllm/.env": f"HF_TOKEN={S['dotenv']}\n",
    "home/me/.cache/huggingface/token": S["cache-token"],
    "home/me/.cache/huggingface/hub/models--openai--gpt-oss-120b/refs/main": "b" * 40,
    "home/me/.cache/huggingface/hub/models--openai--gpt-oss-120b/snapshots/"
    + "b" * 40
    + "/config.json": "{}",
    "etc/dgx-release": 'DGX_PLATFORM="GX10"\nDGX_OTA_VERSION="7.5.0"\n'
    f'DGX_SERIAL_NUMBER="{S["release-serial"]}"\n',
}
PROCESS = (
    ["vllm", "serve", "openai/gpt-oss-120b", "--port=8000", f"--api-key={S['process-arg']}"],
    [f"HF_TOKEN={S['process-env']}", "NCCL_NET=IB", "VLLM_HOST_IP=10.0.0.11"],
)
CONTAINERS = (HOSTILE, SHELL, OTHER, MORE, SCRIPTED)
CURL = ["curl", "-H", f"X-Own: {S['process-curl']}", "http://vllm/serve"]
WATCH = ["bash", "-c", f"export A_KEY={S['process-script']} && vllm serve a/b --port 8000"]
PROCESSES = {
    4711: PROCESS,
    4712: (CURL, [f"SOME_KEY={S['environ-other']}"]),
    4713: (WATCH, ["NCCL_NET=IB"]),
}
NODE = Machine(
    "spark1",
    FILES,
    {
        "ip -j address": json.dumps(
            [
                address("enp1s0f0np0", "192.168.100.12/24")
                | {"ifalias": f"to {S['interface-alias']}", "promiscuity": 0}
            ]
        ),
        "lldpcli -f keyvalue show neighbors": "lldp.enp1s0f0np0.chassis.name=spark2\n"
        f"lldp.enp1s0f0np0.chassis.descr={S['lldp-text']}\n",
    },
    CONTAINERS,
    PROCESSES,
)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return NODE.capture(tmp_path_factory.mktemp("capture"))


@pytest.fixture(scope="module")
def members(archive: Path) -> dict[str, str]:
    with tarfile.open(archive) as tar:
        return {
            member.name.removeprefix("spark1/"): tar.extractfile(member).read().decode()  # type: ignore[union-attr]
            for member in tar
            if member.isfile()
        }


def test_secrets_have_over_eighty_forms() -> None:
    assert len(set(FORMS)) >= 80
    printed = json.dumps([container.inspected() for container in CONTAINERS])
    printed += HOSTILE.image_inspected()
    printed += json.dumps([*FILES.values(), *NODE.printed.values(), *PROCESSES.values()])
    assert [form for form in FORMS if S[form] not in printed] == []


@pytest.mark.parametrize("form", FORMS)
def test_secrets_stay_on_the_node(form: str, members: dict[str, str]) -> None:
    assert [path for path, text in members.items() if S[form] in text or S[form] in path] == []


KEPT = {
    "containers/engine.txt": [
        'cmd "openai/gpt-oss-120b"',
        'cmd "--max-model-len=65536"',
        'cmd "--port"\ncmd "8000"',
        'cmd "--api-key=[removed]"',
        'env "HF_TOKEN=[removed]"',
        'env "NCCL_IB_HCA=rocep1s0f0,roceP2p1s0f0"',
        'image "vllm/vllm-openai:v0.33.0"',
    ],
    "containers/shell.txt": ['cmd "vllm"\ncmd "serve"\ncmd "a/b"\ncmd "--port"\ncmd "8000"'],
    "processes/4711.txt": ['env "NCCL_NET=IB"', 'arg "--api-key=[removed]"'],
    "files/etc/nccl.conf": ["#\nNCCL_NET = IB\nMY_KEY=[removed]\nNCCL_DEBUG=[removed]\n"],
    "files/etc/NetworkManager/system-connections/cx7.nmconnection": [
        "address1=192.168.100.12/24,192.168.100.1\naddress2=[removed]\nmethod=manual\n"
    ],
    "files/etc/systemd/system/engine.service": [
        "vllm/vllm-openai:v0.33.0 serve a/b --api-key [removed] \\\n",
        "Restart=always\n",
    ],
    "commands/models.txt": ["cache openai/gpt-oss-120b ", f"ref main {'b' * 40}"],
    "commands/dgx-release.txt": ['DGX_OTA_VERSION="7.5.0"\n'],
    "commands/lldp.txt": ["lldp.enp1s0f0np0.chassis.name=spark2\n"],
}


@pytest.mark.parametrize("path", KEPT)
def test_useful_values_are_kept(path: str, members: dict[str, str]) -> None:
    text = members[path].replace("cmd -script\n", "")
    assert [line for line in KEPT[path] if line not in text] == []


def test_network_files_keep_their_line_numbers(members: dict[str, str]) -> None:
    before = FILES["etc/netplan/40-cx7.yaml"].splitlines()
    after = members["files/etc/netplan/40-cx7.yaml"].splitlines()
    assert len(before) == len(after)
    assert after[5] == "      addresses: [192.168.100.12/24]"
    assert after[7:] == ["# [removed]"] * (len(after) - 7)


def test_hardware_addresses_are_removed(members: dict[str, str]) -> None:
    assert "4c:bb:47" not in json.dumps(members)


def test_capture_is_reproducible_and_lists_its_files(archive: Path, tmp_path: Path) -> None:
    done = NODE.run(tmp_path)
    assert (tmp_path / "spark1.tar.gz").read_bytes() == archive.read_bytes()
    assert "took containers/engine.txt" in done.stdout
    assert "Read it before you send it on" in done.stdout


def test_stand_in_for_docker_prints_what_docker_does(tmp_path: Path) -> None:
    require("docker")
    container = replace(
        HOSTILE,
        mounts=[("/srv/models", "/models")],
        build="c4" * 32,
        init=None,
        capabilities=["IPC_LOCK"],
        devices=["/dev/infiniband"],
        ulimits={"memlock": -1},
    )
    expected = Machine("spark1", {}, {}, [container]).capture(tmp_path)
    socket = tmp_path / "docker.sock"
    env = {**os.environ, "DOCKER_HOST": f"unix://{socket}", "CAPTURE_ROOT": str(tmp_path / "none")}
    (tmp_path / "own").mkdir()
    with engine(container, socket):
        argv = ["sh", str(SCRIPT), "spark1"]
        subprocess.run(
            argv, cwd=tmp_path / "own", env=env, capture_output=True, timeout=PATIENCE, check=True
        )
    path = "containers/engine.txt"
    captured = (tmp_path / "own/spark1.tar.gz").read_bytes()
    printed = read("own", captured).texts[path].splitlines()
    assert printed == read("stand-in", expected.read_bytes()).texts[path].splitlines()


def test_script_passes_shellcheck() -> None:
    require("shellcheck")
    done = subprocess.run(["shellcheck", "-s", "sh", SCRIPT], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


# Archives of any origin


def packed(*members: tuple[str, str | bytes], **more: object) -> bytes:
    """An archive of these files; `more` sets attributes of the last one."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for place, (name, content) in enumerate(members, start=1):
            data = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(name)
            info.size = len(data)
            for attribute, value in more.items() if place == len(members) else ():
                setattr(info, attribute, value)
            tar.addfile(info, io.BytesIO(data))
    return gzip.compress(out.getvalue(), mtime=0)


def extended(form: int, name: str, **headers: str) -> bytes:
    """An archive of one file with extended headers, which capture.sh never writes."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as tar:
        info = tarfile.TarInfo(name)
        info.pax_headers = headers
        tar.addfile(info)
    return gzip.compress(out.getvalue(), 1)


HEAD = ("n/capture.txt", "# sparkgen capture 1\n")
LINK = {"linkname": "/etc/shadow", "size": 0}
REFUSED: Mapping[str, Callable[[], bytes]] = {
    "not a gzip archive": lambda: b"PK",
    "its gzip is damaged": lambda: b"\x1f\x8b\x08\x00" + b"\xff" * 40,
    "it is cut off": lambda: packed(HEAD)[:40],
    "its tar is damaged": lambda: gzip.compress(b"\x01" * 2000),
    "more than 48 MiB": lambda: gzip.compress(bytes(1 << 26), 1),
    "more than 16 MiB": lambda: b"\x1f\x8b" + bytes(17 << 20),
    "n/big has more than 1 MiB": lambda: packed(HEAD, ("n/big", bytes((1 << 20) + 1))),
    "files/a has more than 256 KiB": lambda: packed(HEAD, ("n/files/a", " " * ((256 << 10) + 1))),
    "more than 60 files in containers/": lambda: packed(
        HEAD, *((f"n/containers/{i}.txt", "") for i in range(61))
    ),
    "more than 2000 files": lambda: packed(*((f"n/{i}", "") for i in range(2001))),
    "n/a is a link": lambda: packed(HEAD, ("n/a", ""), type=tarfile.SYMTYPE, **LINK),
    "n/b is a link": lambda: packed(HEAD, ("n/b", ""), type=tarfile.LNKTYPE, **LINK),
    "n/c is a device": lambda: packed(HEAD, ("n/c", ""), type=tarfile.CHRTYPE),
    "n/d is a device": lambda: packed(HEAD, ("n/d", ""), type=tarfile.FIFOTYPE),
    "../a is not a path": lambda: packed(HEAD, ("../a", "x")),
    "/etc/a is not a path": lambda: packed(HEAD, ("/etc/a", "x")),
    "n/../../a is not a path": lambda: packed(HEAD, ("n/../../a", "x")),
    "n/a\\x1b]0;x is not a path": lambda: packed(HEAD, ("n/a\x1b]0;x", "x")),
    "line 2 of n/a has the character U+001B": lambda: packed(HEAD, ("n/a", "x\n\x1b[2J")),
    "line 1 of n/e has the character U+00FF": lambda: packed(HEAD, ("n/e", b"\xff\xfe")),
    "n/capture.txt is in it twice": lambda: packed(HEAD, HEAD),
    "after its end": lambda: packed(HEAD) + packed(HEAD),
    "n/aaaa": lambda: extended(tarfile.GNU_FORMAT, "n/" + "a" * 300),
    "n/p has another header": lambda: extended(tarfile.PAX_FORMAT, "n/p", size="-5"),
    "n/q has another header": lambda: extended(tarfile.PAX_FORMAT, "n/q", comment="x" * (8 << 20)),
    "not those of one node": lambda: packed(HEAD, ("m/a", "x")),
    "no capture.txt of this version": lambda: packed(("n/capture.txt", "# sparkgen capture 99\n")),
}


@pytest.mark.parametrize("why", REFUSED)
def test_archive_that_is_no_capture_is_refused(why: str) -> None:
    with pytest.raises(CaptureError) as refused:
        read("n.tar.gz", REFUSED[why]())
    assert why in refused.value.why
    assert refused.value.why.isprintable()
    assert refused.value.advice


def test_capture_is_read(archive: Path, members: dict[str, str]) -> None:
    capture = read(str(archive), archive.read_bytes())
    assert (capture.node, capture.texts) == ("spark1", members)


def test_command_prints_the_script(sparkgen: Command, tmp_path: Path) -> None:
    outcome = sparkgen("capture", cwd=tmp_path)
    assert (outcome.code, outcome.out, outcome.err) == (0, SCRIPT.read_text(), "")


# Names of one's own that begin like names of NCCL, the engines and what these run on.
OWN_NAMES = [
    *("NCCL_OWNPASS", "NCCL_IB_HCA_PW", "NCCL_DEBUG_OF_MINE", "UCX_MINE", "OMPI_MCA_mine"),
    *("PMIX_MCA_mine", "TORCH_NCCL_MINE", "OMP_MINE", "VLLM_USE_MINE", "VLLM_ENABLE_MINE"),
    *("VLLM_HOST_IP_OF_MINE", "SGLANG_ENABLE_MINE", "SGLANG_OPT_MINE", "TRTLLM_MINE", "TLLM_MINE"),
    *("GGML_MINE", "TRITON_MINE", "FLASHINFER_MINE", "PYTORCH_MINE", "RAY_memory_mine"),
]
OWN_PLACES = ("container", "image", "process", "unit", "nccl")


def own_secret(name: str, place: str) -> str:
    """A secret that is one ordinary word."""
    return f"zq{name.replace('_', '')}{place}zq".lower()


def own_machine(machine_id: str = "") -> Machine:
    """A node with a variable of each of these names in each place."""
    lines = {p: [f"{n}={own_secret(n, p)}" for n in OWN_NAMES] for p in OWN_PLACES}
    unit = "".join(f"Environment={line}\n" for line in lines["unit"])
    files = {
        "etc/nccl.conf": "\n".join(lines["nccl"]) + "\nNCCL_DEBUG=INFO\n",
        "etc/systemd/system/vllm.service": f"[Service]\n{unit}ExecStart=/usr/bin/vllm serve a/b\n",
        **({"etc/machine-id": f"{machine_id}\n"} if machine_id else {}),
    }
    container = Container(
        *("engine", "vllm/vllm-openai:v0.33.0", ["serve", "a/b"], ["vllm"]),
        env=[*lines["container"], "NCCL_IB_HCA=rocep1s0f0"],
        image_env=lines["image"],
    )
    process = (["vllm", "serve", "a/b", "--port=8000"], lines["process"])
    return Machine("spark1", files, {}, [container], {4711: process})


def unpacked(archive: Path) -> str:
    with tarfile.open(archive) as tar:
        files = [tar.extractfile(member) for member in tar if member.isfile()]
        return "\n".join(file.read().decode() for file in files if file)


@pytest.mark.parametrize("machine_id", ["", "3c2f" * 8])
def test_names_of_ones_own_keep_no_value(machine_id: str, tmp_path: Path) -> None:
    """Whatever a name begins with, its value is kept only if the whole name is known."""
    assert len(FORMS) + len(OWN_NAMES) >= 120
    assert len(FORMS) + len(OWN_NAMES) * len(OWN_PLACES) >= 200
    text = unpacked(own_machine(machine_id).capture(tmp_path))
    secrets = [own_secret(name, place) for name in OWN_NAMES for place in OWN_PLACES]
    assert [word for word in secrets if word in text] == []
    assert [name for name in OWN_NAMES if f"{name}=[removed" not in text] == []
    assert "NCCL_DEBUG=INFO" in text
    assert "kept the value of NCCL_DEBUG\n" in text
    assert "left out the value of NCCL_OWNPASS\n" in text


def test_a_hash_shows_a_change_and_no_value(tmp_path: Path) -> None:
    """The same value on the same node has the same hash; the key is not in the archive."""
    texts = []
    for number, machine_id in enumerate(("1a2b" * 8, "1a2b" * 8, "3c4d" * 8)):
        (tmp_path / str(number)).mkdir()
        archive = own_machine(machine_id).capture(tmp_path / str(number))
        texts.append(unpacked(archive))
        assert machine_id not in texts[-1]
        assert "[removed:" not in str(read("spark1", archive.read_bytes()).texts)
    hashes = [re.findall(r"NCCL_OWNPASS=(\[removed:[0-9a-f]{16}\])", text) for text in texts]
    assert hashes[0] == hashes[1] != hashes[2]
    plain = hashlib.sha256(own_secret("NCCL_OWNPASS", "nccl").encode()).hexdigest()
    assert plain[:16] not in texts[0]


# Texts of a site's own files with a secret in each, in forms that give no hint of it.
OWN_TEXTS = [
    "curl https://robot:%s@git.example/x.git\n",
    "git clone https://%s@github.example/o/r\n",
    "export OWN_GATE=%s\n",
    "DB_URL=postgres://app:%s@db:5432/x\n",
    '{"backend": {"login": "ops", "word": "%s"}}\n',
    "users:\n  - ops\n  - %s\n",
    "pins:\n  - %s\n",
    "curl -H 'X-Auth: %s' http://10.0.0.1/\n",
    'curl -H "Authorization: Token %s" http://x/\n',
    'curl -H "X-Api: %s" http://x/\n',
    "vllm serve m --api-key %s\n",
    "tool --pass-phrase '%s' run\n",
    "tool --t=%s\n",
    "export K64=%s\n",
    "-----BEGIN EC PARAMETERS-----\n%s\n-----END EC PARAMETERS-----\n",
    "ssh-ed25519-priv %s\n",
    "cat <<EOF >/root/x\n%s\nEOF\n",
    "# old login: root / %s\n",
    "# do not lose this: %s\n",
    'client = Client("ops", "%s")\n',
    "SALT = b'%s'\n",
    'headers = {"x-gate": "%s"}\n',
    "{# hint: %s #}\n{{ messages }}\n",
    "{%- if user == '%s' %}admin{% endif %}\n",
    "The safe opens with %s today.\n",
    "machine git.example login bot account %s\n",
    "requirepass %s\n",
    "bind_credential=%s\n",
    "<auth user='x'>%s</auth>\n",
    "<add name='conn' value='Server=x;Uid=y;Pwd=%s;'/>\n",
    "[gate]\nphrase = '%s'\n",
    'otp_seed = "%s"\n',
    "[s3]\naws_id = x\nsec = %s\n",
    "HF=%s\n",
    "printf '%s' %s | docker login -u x --stdin\n",
    "echo %s | sudo -S true\n",
    "mount -t cifs //nas/x /mnt -o username=a,pw=%s\n",
    "openssl enc -aes-256-cbc -k %s\n",
    "sshpass -p%s ssh x\n",
    "export DSN='https://%s@sentry.example/4'\n",
    "webhook: https://hooks.example/services/%s\n",
    "url: https://x.example/cb?sig=%s\n",
    "notes: |\n  Ask Kim, or use %s\n",
    "gate: &g %s\nother: *g\n",
    '["%s"]\n',
    "ops,%s,2026\n",
    'PGPASSFILE=x; psql "host=x user=y p=%s"\n',
    'vllm serve m --served-model-name ok --hf-overrides \'{"z": "%s"}\'\n',
    "LONG=aaaa\\\n%s\n",
    "db.example:5432:app:ops:%s\n",
    "ops:%s\n",
    "https://%s:x-oauth@h/\n",
    "docker run -e GATE=%s img:1 serve x\n",
    "docker run --label x=%s img:1\n",
    "docker run img:1 --requirepass %s\n",
    "--port 8000 -a %s\n",
    "--x %s\n",
    "--host ops:%s@h\n",
    "vllm serve m \\\n  --api-key \\\n  %s\n",
    "A=1; %s\n",
    "X={a: %s}\n",
    "GATE=%s\r\n",
    'if [ "$1" = %s ]; then\n',
    "case $1 in %s) ;; esac\n",
    "mpirun -x %s ray start %s\n",
    "redis-cli -a %s ping\n",
    '\t{"name": "x", "v": ["%s", 1]}\n',
    "export %s\n",
    "<!-- %s -->\n",
    "%s%\n",
    "$(%s)\n",
    "f(x=%s)\n",
    "'%s'\n",
    "key=%s\n",
    "env A=%s vllm serve m\n",
    "bash -c '%s x'\n",
    'user = "alice:%s"\n',
    "mount = //nas/x,username=a,pass=%s\n",
    "HOST=db;pass=%s\n",
    "log-opt: gelf-pwd=%s\n",
    "docker run -u a:%s -v //h/%s:/x img\n",
    "MODEL=x?sig=%s\n",
    "MODEL=%s\n",
    "OPENAI_API_BASE_URL=https://hooks.example/%s\n",
    "host:5432:app:alice:%s\n",
    "backend:%s\n",
    '- "%s="\n',
    '{"blobs": ["%s="]}\n',
    "%s=\n",
    "%s: alice\n",
    "PASSWORD=(%s:battery)\n",
    "password: {%s=abc\n",
    "[%s x]\n",
    "docker run %s -p x\n",
    "I serve %s/pass\n",
    "login %s/start\n",
    "cat /home/%s/secret.sh\n",
    "tool --%s\n",
]
OWN_VALUES = (
    *("plumtree", "81620734", "Zm9vYmFyYmF6cXV4", "three small boats", "cn-Adm1n.pw"),
    *("!@#$%^&*_+~?", "deadbeef0123456789abcdef01234567", "abcDEF_ghi-jkl"),
)


def own_files(texts: Mapping[str, str]) -> dict[str, str]:
    """The files of a site's own on a node, with the sums by which capture.sh finds them."""
    files = {f"opt/sparkgen/files/{name}": text for name, text in texts.items()}
    sums = (f"{hashlib.sha256(t.encode()).hexdigest()}  {path}\n" for path, t in files.items())
    return {**files, "etc/machine-id": "1a2b\n", "etc/sparkgen/bundle/SHA256SUMS": "".join(sums)}


@pytest.mark.parametrize("value", OWN_VALUES)
def test_own_files_keep_no_secret(value: str, tmp_path: Path) -> None:
    """Only what is known is kept, whatever the file is and however it is written."""
    texts = {f"{number}.txt": text.replace("%s", value) for number, text in enumerate(OWN_TEXTS)}
    node = Machine("spark1", own_files(texts), options=("--files",))
    archive = read("spark1", node.capture(tmp_path).read_bytes())
    taken = [
        b64decode(text).decode() if path.endswith(".base64") else text
        for path, text in archive.texts.items()
    ]
    assert [text for text in taken if value in text] == []
    shown = [path for path in archive.texts if path.startswith("files/opt/sparkgen/shown/")]
    assert len(shown) == len(OWN_TEXTS)


def test_own_files_keep_names_and_known_values(tmp_path: Path) -> None:
    text = (
        "# ours\nservices:\n  engine:\n    image: vllm/vllm-openai:v0.33.0\n    ours: plumtree\n"
        "    command:\n      --max-model-len 4096\n      --api-key plumtree\n"
        "    environment:\n      - NCCL_DEBUG=INFO\n      - GATE=plumtree\n"
    )
    known = "[Service]\nRestart=always\n\nNCCL_IB_HCA=rocep1s0f0\nexport NCCL_DEBUG=INFO\n"
    node = Machine("spark1", own_files({"a.yaml": text, "b.env": known}), options=("--files",))
    archive = unpacked(node.capture(tmp_path))
    lines = [re.sub(r"\[removed:[0-9a-f]{16}\]", "-", line) for line in archive.splitlines()]
    hidden = r"(plumtree|ours|GATE|vllm/vllm-openai|v0.33.0|--api-key)"
    shown = re.sub(rf"{hidden}( {hidden})*", "-", text).splitlines()
    at = lines.index("services:") - 1
    assert lines[at : at + len(shown)] == shown
    # What has nothing else is taken as it is.
    assert b64encode(known.encode()).decode()[:60] in archive
