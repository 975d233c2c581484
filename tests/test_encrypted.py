"""Encrypted access: real openssl makes the certificates, and real nginx shows them to clients."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from bundles import IN_GROUPS, Bundle, NodeFolder
from conftest import Command
from gateway_node import ENGINE
from programs import require, require_root
from proxied import NGINX, entering, is_up, machine, require_nginx
from waiting import PATIENCE, until

from generator.services.proxy import Proxy
from generator.services.web_ui import WebUi
from generator.site import Site

FOLDER = next(
    folder
    for folder in IN_GROUPS
    if folder.bundle.name == "golden-groups-encrypted" and folder.name == "spark1"
)
_PROXY, _PAGE = Proxy.of(FOLDER.site), WebUi.of(FOLDER.site)
assert _PROXY
assert _PAGE
PROXY, PAGE = _PROXY, _PAGE
TLS = "etc/sparkgen/tls"
# What ssh and tar do on a node, in the folder of a tree.
_SSH = """\
#!/bin/bash
while [[ $1 == -* ]]; do shift 2; done
shift
cd "$HOME"
exec bash -c "${*//\\/etc\\/sparkgen/$TREE/etc/sparkgen}"
"""
_SUDO = """\
#!/bin/bash
case $1 in -n) shift ;; -S) shift 3 ;; esac
exec "$@"
"""
_PROGRAMS = {"ssh": _SSH, "sudo": _SUDO, "systemctl": "#!/bin/bash\nexit 1\n"}
# Reads an answer part by part, and says when each has come.
_STREAM = """\
import http.client, ssl, sys
context = ssl.create_default_context(cafile=sys.argv[1])
connection = http.client.HTTPSConnection(sys.argv[2], int(sys.argv[3]), context=context, timeout=60)
connection.request("POST", "/v1/chat/completions", sys.argv[5], {"Authorization": sys.argv[4]})
answer = connection.getresponse()
while line := answer.readline():
    print(line.decode().strip(), flush=True)
"""


def openssl(*words: str) -> str:
    """The output of openssl."""
    return subprocess.run(["openssl", *words], check=True, capture_output=True, text=True).stdout


def within(path: Path) -> str:
    """A path as the node sees it, on which /tmp is empty."""
    return f"/proc/{os.getpid()}/root{path}"


@dataclass
class Authority:
    """The operator's machine, with the operator's folder of the bundle."""

    home: Path
    bundle: Path
    tree: Path

    @property
    def folder(self) -> Path:
        return self.home / ".config/sparkgen/authority" / FOLDER.site.name

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """The script, with stand-ins for what leads to the node."""
        path = f"{self.home}/programs:/usr/bin:/bin:/usr/sbin"
        env = {"HOME": str(self.home), "PATH": path, "TREE": str(self.tree)}
        script = str(self.bundle / "operator/certificates.sh")
        return subprocess.run(["bash", script, *words], env=env, capture_output=True, text=True)

    def does(self, *words: str) -> str:
        """Its output if it succeeds."""
        done = self.run(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout


@dataclass
class Front:
    """The node with the proxy."""

    authority: Authority
    holder: int
    nginx: subprocess.Popen[bytes]
    tree: Path

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run a program on the node."""
        enter = entering(self.holder)
        return subprocess.run([*enter, *argv], capture_output=True, text=True, timeout=PATIENCE)

    def script(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run proxy.sh."""
        return self.run("/opt/sparkgen/proxy.sh", *words)

    def ask(self, url: str, *words: str) -> tuple[str, str]:
        """The status, HTTP's version and where it leads to; and the body."""
        root = within(self.authority.folder / "root.pem")
        named = [f"{PROXY.host}:{port}:{PROXY.listen}" for port in (PROXY.port, PAGE.port)]
        resolved = [word for each in named for word in ("--resolve", each)]
        form = "\n%{http_code} %{http_version} %{redirect_url}"
        base = ("curl", "--silent", "--cacert", root, *resolved, "--write-out", form)
        done = self.run(*base, "--max-time", "20", *words, url)
        body, _, said = done.stdout.rpartition("\n")
        return (said.strip() if not done.returncode else f"curl: {done.returncode}"), body

    def chat(self, key: str, content: str, *words: str, url: str = "") -> tuple[str, str]:
        """The answer to a chat request."""
        body = {"model": "assistant", "messages": [{"role": "user", "content": content}]}
        given = ("--header", f"Authorization: Bearer {key}", "--data", json.dumps(body), *words)
        return self.ask(f"{url or PROXY.url}/v1/chat/completions", *given)

    def reload(self) -> None:
        """Reload as the unit does, until only new processes answer new connections."""
        done = self.script("--prepare")
        assert done.returncode == 0, done.stderr
        self.nginx.send_signal(signal.SIGHUP)
        until(lambda: self.shown() == self.fingerprint())

    def shown(self) -> str:
        """The fingerprint of the certificate that a new connection gets."""
        where = f"{PROXY.listen}:{PROXY.port}"
        line = f"openssl s_client -connect {where} </dev/null 2>/dev/null"
        return self.run("sh", "-c", f"{line} | openssl x509 -noout -fingerprint").stdout

    def fingerprint(self) -> str:
        """That of the file on the node."""
        return openssl(
            "x509", "-noout", "-fingerprint", "-in", str(self.tree / TLS / "certificate.pem")
        )


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    require("curl", "ip", "nsenter", "openssl", "unshare")
    require_nginx()
    require_root()
    folder = tmp_path_factory.mktemp("encrypted")
    tree = FOLDER.copy(folder)
    programs = folder / "programs"
    programs.mkdir()
    for name, text in _PROGRAMS.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    authority = Authority(folder, FOLDER.bundle.folder, tree)
    authority.does("make")
    authority.does("install")
    page = ("python3", "-c", ENGINE, PAGE.inner, str(PAGE.port), "page")
    with proxied(FOLDER.site, tree, PROXY, page) as (holder, nginx):
        here = Front(authority, holder, nginx, tree)
        until(lambda: here.ask(f"{PROXY.url}/health/chat-b")[0].startswith("200"))
        yield here


@contextmanager
def proxied(
    site: Site, tree: Path, proxy: Proxy, *beside: Sequence[str]
) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """A process on the node with the proxy, engines behind it and other programs; and nginx."""
    started = []
    routes = proxy.routes(site)
    hosts = {route.address.partition(":")[0] for route in routes} | {proxy.listen}
    try:
        holder = subprocess.Popen(machine(tree, *sorted(hosts - {"127.0.0.1"})))
        started.append(holder)
        until(lambda: is_up(holder.pid))
        enter = entering(holder.pid)
        places = (route.address.partition(":") for route in routes)
        engines = (("python3", "-c", ENGINE, host, port, "assistant") for host, _, port in places)
        started.extend(subprocess.Popen([*enter, *argv]) for argv in (*engines, *beside))
        prepared = subprocess.run([*enter, "/opt/sparkgen/proxy.sh", "--prepare"])
        assert prepared.returncode == 0
        nginx = subprocess.Popen([*enter, *NGINX])
        yield holder.pid, nginx
        nginx.terminate()
        nginx.wait()
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def key(front: Front) -> str:
    made = front.script("add", "alice").stdout.strip()
    front.reload()
    until(lambda: front.chat(made, "x")[0].startswith("200"))
    return made


def test_certificate_is_for_all_names_and_signed_by_the_root(front: Front) -> None:
    text = openssl("x509", "-noout", "-text", "-in", str(front.tree / TLS / "certificate.pem"))
    for name in PROXY.certified:
        assert f"{'IP Address' if name[0].isdigit() else 'DNS'}:{name}" in text
    root = str(front.authority.folder / "root.pem")
    certificate = str(front.tree / TLS / "certificate.pem")
    assert "OK" in openssl(
        "verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", root, certificate
    )
    assert front.authority.does("root") == Path(root).read_text()
    assert "until" in front.authority.does()


def test_keys_stay_where_they_belong(front: Front) -> None:
    kept = list(front.authority.folder.iterdir())
    assert {oct(path.stat().st_mode & 0o777) for path in kept} == {"0o600"}
    for path in kept:
        assert not path.is_relative_to(front.authority.bundle)
    assert oct((front.tree / TLS).stat().st_mode & 0o777) == "0o700"
    assert oct((front.tree / TLS / "key.pem").stat().st_mode & 0o777) == "0o600"
    assert not (front.tree / TLS / "root-key.pem").exists()
    assert not list(front.authority.home.glob(".sparkgen-tls*"))


def test_https_with_http2(front: Front, key: str) -> None:
    status, body = front.chat(key, "hello")
    assert status == "200 2"
    assert json.loads(body)["choices"]
    assert front.chat(key, "hello", "--http1.1")[0] == "200 1.1"
    assert front.chat("sk-" + "x" * 30, "hello")[0] == "401 2"
    assert front.ask(f"https://{PROXY.listen}:{PROXY.port}/health")[0] == "200 2"


def test_client_without_the_root_refuses(front: Front) -> None:
    assert (
        front.ask(f"{PROXY.url}/health", "--cacert", "/etc/ssl/certs/ca-certificates.crt")[0]
        == "curl: 60"
    )


def test_requests_in_clear_text_are_sent_on(front: Front, key: str) -> None:
    clear = PROXY.url.replace("https", "http")
    assert front.ask(f"{clear}/v1/models?a=b")[0] == f"308 1.1 {PROXY.url}/v1/models?a=b"
    assert front.ask(f"{PAGE.url.replace('https', 'http')}/")[0] == f"308 1.1 {PAGE.url}/"


def test_page_is_encrypted_and_keeps_connections(front: Front) -> None:
    assert front.ask(f"{PAGE.url}/health")[0].startswith("200")
    upgrade = ("--header", "Connection: Upgrade", "--header", "Upgrade: websocket")
    front.ask(f"{PAGE.url}/v1/embeddings", "--http1.1", "--data", "{}", *upgrade)
    seen = front.run("curl", "--silent", f"{PAGE.inner_url}/last").stdout
    headers = json.loads(seen)["headers"]
    assert (headers["upgrade"], headers["connection"]) == ("websocket", "upgrade")
    assert headers["x-forwarded-proto"] == "https"
    assert headers["host"] == f"{PROXY.host}:{PAGE.port}"


def test_page_finds_the_gateway_on_its_node_alone(front: Front, key: str) -> None:
    assert front.chat(key, "x", url=PROXY.inner_url)[0] == "200 1.1"
    assert PROXY.inner == "127.0.0.1"


def test_no_key_of_a_client_reaches_an_engine(front: Front, key: str) -> None:
    """Not by the headers that have it, and not by a URL, a cookie or any other header."""
    given = ("--header", f"Authorization: Bearer {key}", "--data", '{"model": "assistant"}')
    words = ("--header", f"X-Api-Key: {key}", "--header", "Cookie: a=b")
    escaped = "".join(f"%{ord(character):02x}" for character in key)
    engines = [f"{route.url}/last" for route in PROXY.routes(FOLDER.site)]
    for path in PROXY.asked:
        assert front.ask(f"{PROXY.url}{path}?a=b", *given, *words)[0] == "200 2", path
        for more, args in (
            ((), f"?api_key={key}"),
            ((), f"?x={escaped}"),
            (("--header", f"Cookie: token={key}"), ""),
            (("--header", f"Api-Key: {key}"), ""),
        ):
            assert front.ask(f"{PROXY.url}{path}{args}", *given, *more)[0] == "400 2", (path, more)
        seen = front.run("curl", "--silent", *engines).stdout
        assert '"path": "/' in seen
        assert key not in seen, path
        assert escaped not in seen, path


def test_renewal_cuts_no_stream(front: Front, key: str) -> None:
    before, root = front.shown(), front.authority.does("root")
    body = {"model": "assistant", "stream": True, "messages": [{"role": "user", "content": "slow"}]}
    where = (within(front.authority.folder / "root.pem"), PROXY.listen, str(PROXY.port))
    words = (*where, f"Bearer {key}", json.dumps(body))
    argv = [*entering(front.holder), "python3", "-u", "-c", _STREAM, *words]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as stream:
        assert stream.stdout
        first = stream.stdout.readline()
        front.authority.does("make")
        front.authority.does("install")
        said = front.script("certificate")
        assert "systemctl reload sparkgen-proxy" in said.stdout
        assert said.returncode == 1
        front.reload()
        rest = stream.stdout.read()
    assert "data:" in first
    assert "[DONE]" in rest
    assert front.shown() != before
    assert front.authority.does("root") == root
    assert front.script("certificate").returncode == 0
    assert front.chat(key, "x")[0] == "200 2"


def made(folder: Path, days: int, name: str) -> tuple[Path, Path]:
    """A certificate and its key, as they come from elsewhere."""
    certificate, own = folder / "other.pem", folder / "other.key"
    given = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", str(own))
    subject = ("-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}")
    openssl("req", "-x509", *given, *subject, "-days", str(days), "-out", str(certificate))
    return certificate, own


@pytest.mark.parametrize(
    ("days", "name", "faulty", "said"),
    [
        (365, "llm.example.org", "", ""),
        (20, "llm.example.org", "", "expires on"),
        (365, "other.example.org", "", "is not for llm.example.org"),
        (365, "llm.example.org", "key", "is not the key of"),
        (365, "llm.example.org", "no certificate", "certificate.pem is missing"),
        (365, "llm.example.org", "no key", "key.pem is missing"),
        (365, "llm.example.org", "text", "is not a certificate in PEM"),
        (365, "llm.example.org", "password", "is not a key in PEM that can be read without"),
    ],
)
def test_faults_of_a_certificate_are_told(
    days: int, name: str, faulty: str, said: str, front: Front, key: str, tmp_path: Path
) -> None:
    kept = {path.name: path.read_bytes() for path in (front.tree / TLS).iterdir()}
    shown = front.shown()
    certificate, own = made(tmp_path, days, name)
    texts = {"certificate.pem": certificate.read_bytes(), "key.pem": own.read_bytes()}
    if faulty == "key":
        texts["key.pem"] = kept["key.pem"]
    elif faulty == "text":
        texts["certificate.pem"] = b"nothing\n"
    elif faulty == "password":
        locked = openssl("pkey", "-in", str(own), "-aes256", "-passout", "pass:secret")
        texts["key.pem"] = locked.encode()
    try:
        for file, text in texts.items():
            (front.tree / TLS / file).write_bytes(text)
        if faulty.startswith("no "):
            (front.tree / TLS / f"{faulty[3:]}.pem").unlink()
        told = front.script("certificate")
        lines = [line for line in told.stdout.splitlines() if "has another one" not in line]
        assert len(lines) == bool(said), told.stdout
        assert said in told.stdout
        prepared = front.script("--prepare")
        assert prepared.returncode == bool(faulty), prepared.stderr
        if faulty:
            assert said in prepared.stderr
            assert front.shown() == shown
    finally:
        for file, text in kept.items():
            (front.tree / TLS / file).write_bytes(text)
        front.reload()


def test_check_of_the_node(front: Front) -> None:
    """verify.py asks the script, and so does install.sh before anything is installed."""
    words = ("--json", "--before-start")
    said = json.loads(front.run("/opt/sparkgen/verify.py", *words).stdout)
    found = {each["check"]: each for each in _results(said)}
    assert found["certificate"]["status"] == "OK", found["certificate"]
    (front.tree / TLS / "key.pem").rename(front.tree / TLS / "kept")
    try:
        front.run("cp", "--recursive", within(FOLDER.path), "/run/bundle")
        done = front.run("bash", "/run/bundle/install.sh", "--check", "--force-host")
        assert "key.pem is missing: operator/certificates.sh make, then install" in done.stdout
    finally:
        (front.tree / TLS / "kept").rename(front.tree / TLS / "key.pem")


PLAIN = (Path(__file__).parent / "golden/direct-proxy/site.yaml").read_text()
OWN_FILES = """\
access:
  name: llm.example.org
  tls: {certificate: /etc/sparkgen/own/fullchain.pem, key: /etc/sparkgen/own/key.pem}
"""


@pytest.mark.parametrize("clear", ["", "  clear: false\n", "  clear: redirect\n"])
def test_own_files_at_a_proxy_before_one_engine(clear: str, tmp_path: Path) -> None:
    require("curl", "ip", "nsenter", "openssl", "unshare")
    require_nginx()
    require_root()
    file = tmp_path / "site.yaml"
    file.write_text(PLAIN + OWN_FILES + clear)
    # Workers share what they make by its name, and name their folders alike.
    node = NodeFolder(Bundle(f"own-files-{len(clear)}", file), "spark1")
    proxy, tree = Proxy.of(node.site), node.copy(tmp_path / "nodes")
    assert proxy
    certificate, own = made(tmp_path, 365, "llm.example.org")
    (tree / "etc/sparkgen/own").mkdir()
    shutil.copy(certificate, tree / "etc/sparkgen/own/fullchain.pem")
    shutil.copy(own, tree / "etc/sparkgen/own/key.pem")
    (tree / "etc/sparkgen/secrets.env").write_text("VLLM_API_KEY=own\n")
    with proxied(node.site, tree, proxy) as (holder, _):
        base = (*entering(holder), "curl", "--silent", "--cacert", within(certificate))
        place = ("--resolve", f"{proxy.host}:{proxy.port}:{proxy.listen}", "--max-time", "20")

        def status(url: str) -> str:
            words = ("--output", "/dev/null", "--write-out", "%{http_code} %{redirect_url}")
            done = subprocess.run([*base, *place, *words, url], capture_output=True, text=True)
            return done.stdout.strip()

        until(lambda: status(f"{proxy.url}/health") == "200")
        assert status(f"{proxy.url}/v1/models") == "401"
        refused = status(f"{proxy.url.replace('https', 'http')}/v1/models")
        assert refused == (f"308 {proxy.url}/v1/models" if "redirect" in clear else "400")


def _results(said: Any) -> Any:
    return said["checks"]


def test_script_says_what_comes_first(front: Front, tmp_path: Path) -> None:
    other = Authority(tmp_path, front.authority.bundle, front.tree)
    for words in ((), ("install",), ("root",)):
        assert "operator/certificates.sh make" in other.run(*words).stderr
    assert other.run("other").returncode == 2
    assert not list(tmp_path.iterdir())


# What a change of certificates asks for


MAKE = "make the certificate and install it: operator/certificates.sh"
RESTART_PAGE, RESTART_PROXY = (f"systemctl restart sparkgen-{n}" for n in ("web-ui", "proxy"))
ENCRYPTED = (Path(__file__).parent / "golden/groups-encrypted/site.yaml").read_text()
CLEAR, _, ACCESS = ENCRYPTED.partition("access:\n")
OWN = ACCESS.replace("{authority: site}", "{certificate: /srv/a.pem, key: /srv/key.pem}")
# The targets have the scheme and the name of the address.
LOAD = "load operator/prometheus.yml into Prometheus"
BRING = "bring the certificate and its key: /srv/{}.pem"


@pytest.mark.parametrize(
    ("before", "after", "steps"),
    [
        # nginx takes the address of the page, and gives it back.
        (CLEAR, ENCRYPTED, [MAKE, RESTART_PAGE, RESTART_PROXY, LOAD]),
        (ENCRYPTED, CLEAR, [RESTART_PROXY, RESTART_PAGE, LOAD]),
        (
            ENCRYPTED,
            ENCRYPTED.replace("llm.example", "ai.example"),
            [MAKE, RESTART_PAGE, RESTART_PROXY, LOAD],
        ),
        (ENCRYPTED, f"{CLEAR}access:\n{OWN}", [BRING.format("a"), RESTART_PROXY, LOAD]),
        (
            f"{CLEAR}access:\n{OWN}",
            f"{CLEAR}access:\n{OWN.replace('/a.', '/b.')}",
            [BRING.format("b"), RESTART_PROXY],
        ),
    ],
    ids=["encrypted", "in clear text", "another name", "own files", "other files"],
)
def test_steps_of_a_change(
    before: str, after: str, steps: list[str], tmp_path: Path, sparkgen: Command
) -> None:
    site = tmp_path / "site.yaml"
    site.write_text(before)
    assert sparkgen("build", site, cwd=tmp_path).code == 0
    site.write_text(after)
    (told,) = json.loads(sparkgen("diff", site, "--format", "json", cwd=tmp_path).out)["sites"]
    found = [step["step"] for step in told["order"] if not step["step"].startswith(("copy", "ins"))]
    assert found == steps
    assert not [line for line in told["clients"] if "authority of :" in line]


def test_name_of_an_address_leads_to_another_node(tmp_path: Path, sparkgen: Command) -> None:
    site = tmp_path / "site.yaml"
    site.write_text(ENCRYPTED)
    assert sparkgen("build", site, cwd=tmp_path).code == 0
    site.write_text(ENCRYPTED.replace("gateway: true", "gateway: {node: spark2}"))
    (told,) = json.loads(sparkgen("diff", site, "--format", "json", cwd=tmp_path).out)["sites"]
    wanted = "llm.example.org must lead to 10.0.0.12 (spark2), in place of 10.0.0.11"
    assert wanted in told["clients"]


def test_a_new_name_has_to_lead_to_the_proxy(tmp_path: Path, sparkgen: Command) -> None:
    site = tmp_path / "site.yaml"
    site.write_text(CLEAR)
    assert sparkgen("build", site, cwd=tmp_path).code == 0
    site.write_text(ENCRYPTED)
    (told,) = json.loads(sparkgen("diff", site, "--format", "json", cwd=tmp_path).out)["sites"]
    assert [line for line in told["clients"] if "must lead" in line] == [
        "llm.example.org must lead to 10.0.0.11 (spark1)"
    ]
