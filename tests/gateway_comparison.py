"""The gateway beside others: `PYTHONPATH=.:tests python tests/gateway_comparison.py`.

Plain nginx has the same engines as an upstream with `least_conn`, no keys and no njs; another one
has scripts that do nothing, as many as the gateway has. With `--litellm ENVIRONMENT`, in which
`litellm[proxy]` is installed, the gateway of release 0.2.0 takes part, nginx before LiteLLM, with
the files of its bundle. All are asked in turns: streams for the CPU time of a chunk, single
requests for the time to the first token, 1,000 streams at once, and many small requests, after
which the memory of the processes is read. `--part` runs one of these, which takes some minutes.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gateway_node
from bundles import BUILT
from gateway_node import PROXY, Node, started
from proxied import entering
from releases import bundles
from waiting import until

PLAIN_PORT, FORMER_PORT, SCRIPTED_PORT = 8089, 8090, 8091
_PASS = "proxy_pass http://engines; proxy_http_version 1.1; proxy_buffering off;"
ROUNDS, STREAMS, CHUNKS = 5, 40, 250
MANY = 1000
# Whether memory grows is asked of the gateway. LiteLLM would need an hour for as many.
REQUESTS, FEWER_REQUESTS, FEWEST_REQUESTS = 100_000, 20_000, 2000
MASTER_KEY = "sk-master-of-the-comparison"

# Answers with as many chunks as the prompt says, every 20 ms.
ENGINE = """\
import asyncio, json, re, sys
ADDRESS, PORT, NAME = sys.argv[1], int(sys.argv[2]), sys.argv[3]
ABOUT = b'"id": "x", "created": 1, "model": "assistant", "object": "chat.completion'
DELTA = b'{"index": 0, "delta": {"content": "word "}}'
MESSAGE = b'{"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}'
PART = b'data: {%s.chunk", "choices": [%s]}\\n\\n' % (ABOUT, DELTA)
WHOLE = b'{%s", "choices": [%s]}' % (ABOUT, MESSAGE)
async def answer(reader, writer):
    head = await reader.readuntil(b"\\r\\n\\r\\n")
    size = re.search(rb"(?i)content-length: (\\d+)", head)
    body = await reader.readexactly(int(size[1])) if size else b""
    if head.startswith(b"GET"):
        text = json.dumps({"data": [{"id": NAME}]}).encode()
    else:
        text = WHOLE
    chunks = re.search(rb'"chunks": (\\d+)', body)
    if not chunks:
        writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n%s" % (len(text), text))
    else:
        writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Type: text/event-stream\\r\\n"
                     b"Transfer-Encoding: chunked\\r\\n\\r\\n")
        for _ in range(int(chunks[1])):
            writer.write(b"%x\\r\\n%s\\r\\n" % (len(PART), PART))
            await writer.drain()
            await asyncio.sleep(0.02)
        writer.write(b"0\\r\\n\\r\\n")
    await writer.drain()
    writer.close()
async def main():
    server = await asyncio.start_server(answer, ADDRESS, PORT, backlog=4096)
    await server.serve_forever()
asyncio.run(main())
"""

# Sends requests, some of them at once; prints how many answers are whole and the median seconds to
# the first byte of their bodies.
CLIENT = """\
import asyncio, json, sys, statistics, time
host, port, key, count, width, chunks = sys.argv[1:4] + [*map(int, sys.argv[4:])]
body = {"model": "assistant", "messages": [{"role": "user", "content": "hello"}]}
body["stream"] = chunks > 0
if chunks: body["chunks"] = chunks
text = json.dumps(body).encode()
request = (b"POST /v1/chat/completions HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n"
           b"Authorization: Bearer %s\\r\\nContent-Length: %d\\r\\n\\r\\n%s")
request %= (key.encode(), len(text), text)
first, whole, left = [], 0, count
async def ask():
    global whole
    start = time.monotonic()
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request)
    head = await reader.readuntil(b"\\r\\n\\r\\n")
    data = await reader.read(65536)
    first.append(time.monotonic() - start)
    end = data
    while data:
        data = await reader.read(65536)
        end = (end + data)[-512:]
    is_whole = end.endswith(b"0\\r\\n\\r\\n") if chunks else b"finish_reason" in end
    whole += head.startswith(b"HTTP/1.1 200") and is_whole
    writer.close()
async def client():
    global left
    while left > 0:
        left -= 1
        await ask()
async def main():
    await asyncio.gather(*(client() for _ in range(width)))
start = time.monotonic()
asyncio.run(main())
seconds = time.monotonic() - start
print(json.dumps({"whole": whole, "first": statistics.median(first), "seconds": seconds}))
"""


@dataclass
class Server:
    """An nginx, where it listens, and the other processes that it needs."""

    node: Node
    process: "subprocess.Popen[bytes]"
    port: int
    requests: int = FEWER_REQUESTS
    others: tuple[int, ...] = ()

    @property
    def workers(self) -> list[str]:
        pid = self.process.pid
        own = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [*own, *map(str, self.others)]

    @property
    def cpu(self) -> float:
        """Seconds of CPU time of the workers and the others."""
        stats = (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2] for pid in self.workers)
        return sum(sum(map(int, stat.split()[11:13])) for stat in stats) / 100

    @property
    def memory(self) -> float:
        """MB that they have in memory."""
        return self._kilobytes("VmRSS:") / 1024

    @property
    def most_memory(self) -> float:
        """MB that each of them had at most."""
        return self._kilobytes("VmHWM:") / 1024

    def _kilobytes(self, name: str) -> int:
        texts = (Path(f"/proc/{pid}/status").read_text() for pid in self.workers)
        return sum(int(text.partition(name)[2].split()[0]) for text in texts)

    def ask(self, count: int, width: int, chunks: int) -> dict[str, Any]:
        """What clients saw, with the CPU time of the workers."""
        host = PROXY.url.removeprefix("http://").partition(":")[0]
        numbers = map(str, (self.port, self.node.key, count, width, chunks))
        argv = [*entering(self.node.holder), sys.executable, "-c", CLIENT, host, *numbers]
        before = self.cpu
        found: dict[str, Any] = json.loads(subprocess.run(argv, capture_output=True).stdout)
        return found | {"cpu": self.cpu - before}


def plain(node: Node) -> Server:
    """Nginx with the same engines and nothing else, before the same address."""
    return _nginx(node, PLAIN_PORT, "", f"location / {{ {_PASS} }}")


def scripted(node: Node) -> Server:
    """The same with two scripts that do nothing, before the answer and with it."""
    node.run("mkdir", "-p", "/run/scripts")
    enter = entering(node.holder)
    script = """\
export default {
  route(r) { r.internalRedirect('@engines'); },
  first(r, data, flags) { r.sendBuffer(data, flags); r.done(); },
};
"""
    argv = [*enter, "tee", "/run/scripts/none.js"]
    subprocess.run(argv, input=script.encode(), capture_output=True)
    locations = f"""
    location / {{ js_content none.route; }}
    location @engines {{ js_body_filter none.first buffer_type=buffer; {_PASS} }}
"""
    return _nginx(
        node, SCRIPTED_PORT, "js_path /run/scripts; js_import none from none.js;", locations
    )


def _nginx(node: Node, port: int, more: str, locations: str) -> Server:
    servers = "".join(f"server {gateway_node.ROUTES[g].address};" for g in ("chat", "chat-b"))
    address = PROXY.url.removeprefix("http://").partition(":")[0]
    text = f"""
load_module modules/ngx_http_js_module.so;
worker_processes 2; pid /tmp/nginx-{port}.pid; events {{ worker_connections 8192; }}
http {{
  access_log off; {more}
  client_body_temp_path /tmp/p1; proxy_temp_path /tmp/p2; fastcgi_temp_path /tmp/p3;
  uwsgi_temp_path /tmp/p4; scgi_temp_path /tmp/p5;
  upstream engines {{ least_conn; zone engines 64k; {servers} }}
  server {{
    listen {address}:{port} backlog=4096;
    {locations}
  }}
}}
"""
    enter = entering(node.holder)
    file = f"/run/nginx-{port}.conf"
    subprocess.run([*enter, "tee", file], input=text.encode(), capture_output=True)
    argv = ("/run/nginx/nginx", "-c", file, "-g", "daemon off; user root;")
    process = node.start(f"nginx-{port}", *argv)
    node.stack.callback(process.wait)
    node.stack.callback(process.terminate)
    until(lambda: node.answers(f"http://{address}:{port}/v1/models"))
    return Server(node, process, port)


def former(node: Node, environment: Path) -> Server:
    """The gateway of the last release, whose files get the addresses and keys of this node."""
    files, _ = bundles("0.2.0")["three-models"]
    config, proxy, hooks = (
        files[f"spark3/opt/sparkgen/{name}"][0].decode()
        for name in ("litellm.yaml", "proxy.conf", "gateway_hooks.py")
    )
    route = config[config.index("  - model_name") : config.index('  - model_name: "embed"')]
    routes = ""
    for group in ("chat", "chat-b"):
        own = re.sub(r"(api_base: ).*", rf'\1"{gateway_node.ROUTES[group].url}/v1"', route)
        own = own.replace('"chat"', '"assistant"').replace("/chat", "/assistant")
        routes += own.replace("id: chat", f"id: {group}")
    key = "secret-vllm_api_key"
    routes = routes.replace("      timeout:", f"      api_key: {key}\n      timeout:")
    start, end = config.index("  - model_name"), config.index("router_settings")
    address = PROXY.url.removeprefix("http://").partition(":")[0]
    written = {
        "litellm.yaml": config[:start] + routes + config[end:],
        "gateway_hooks.py": hooks,
        "proxy.conf": proxy.replace("10.0.0.13:8088", f"{address}:{FORMER_PORT}")
        .replace("/tmp/", "/tmp/former-")
        # Keys of today are longer than those of that release.
        .replace("http {", "http {\n  map_hash_bucket_size 128;")
        .replace("/run/sparkgen-proxy/nginx/", "/run/former-"),
    }
    enter = entering(node.holder)
    folders = {"proxy.conf": "/run/former.conf"}
    for name, text in written.items():
        file = folders.get(name, f"/run/litellm/{name}")
        node.run("mkdir", "-p", "/run/litellm")
        subprocess.run([*enter, "tee", file], input=text.encode(), capture_output=True)
    node.run("sh", "-c", f'echo "\\"Bearer {node.key}|\\" alice;" >/run/former-clients')
    line = f'proxy_set_header Authorization "Bearer {MASTER_KEY}";'
    node.run("sh", "-c", f"echo '{line}' >/run/former-engine")
    variables = [
        f"LITELLM_MASTER_KEY={MASTER_KEY}",
        *("HOME=/tmp", "LITELLM_LOCAL_MODEL_COST_MAP=True", "LITELLM_TELEMETRY=False"),
        *("DISABLE_AIOHTTP_TRANSPORT=True", "DISABLE_ADMIN_UI=True", "NO_DOCS=True"),
    ]
    program = (str(environment / "bin/python"), str(environment / "bin/litellm"))
    options = ("--host", "127.0.0.1", "--port", "4000", "--config", "/run/litellm/litellm.yaml")
    litellm = node.start("litellm", "env", *variables, *program, *options)
    argv = ("/run/nginx/nginx", "-c", "/run/former.conf", "-g", "daemon off; user root;")
    process = node.start("former", *argv)
    node.stack.callback(process.wait)
    node.stack.callback(process.terminate)
    until(lambda: node.answers(f"http://{address}:{FORMER_PORT}/health"), interval=1)
    return Server(node, process, FORMER_PORT, FEWEST_REQUESTS, (litellm.pid,))


def main() -> None:
    """Print the figures of all."""
    parts = {part.__name__: part for part in (chunks, streams, requests)}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--litellm", type=Path, metavar="ENVIRONMENT")
    parser.add_argument("--part", choices=parts)
    asked = parser.parse_args()
    environment: Path | None = asked.litellm
    if environment and environment.resolve().is_relative_to("/tmp"):
        parser.error("the node has a /tmp of its own: have the environment elsewhere")
    gateway_node.ENGINE = ENGINE
    with TemporaryDirectory() as folder:
        os.environ[BUILT] = folder
        node_folder = Path(folder) / "node"
        node_folder.mkdir()
        with started(node_folder) as node:
            servers = all_servers(node, environment)
            for name, part in parts.items():
                if asked.part in (None, name):
                    part(servers)


def all_servers(node: Node, environment: Path | None) -> dict[str, Server]:
    """All that take part, by what they are called."""
    assert node.nginx
    port = int(PROXY.url.rpartition(":")[2])
    servers = {
        "plain": plain(node),
        "empty scripts": scripted(node),
        "gateway": Server(node, node.nginx, port, REQUESTS),
    }
    return servers | ({"0.2.0": former(node, environment)} if environment else {})


def chunks(servers: dict[str, Server]) -> None:
    """The CPU time of a streamed chunk, and the time until the first token."""
    cpu: dict[str, list[float]] = {name: [] for name in servers}
    first: dict[str, list[float]] = {name: [] for name in servers}
    for _ in range(ROUNDS):
        for name, server in servers.items():
            found = server.ask(STREAMS, STREAMS, CHUNKS)
            assert found["whole"] == STREAMS or name == "0.2.0", found
            cpu[name].append(found["cpu"] / STREAMS / CHUNKS * 1000)
            first[name].append(server.ask(200, 1, 1)["first"] * 1000)
    for name in servers:
        own = zip(cpu["plain"], cpu[name], strict=True)
        ratio = statistics.median(other / plain for plain, other in own)
        later = statistics.median(map(float.__sub__, first[name], first["plain"]))
        print(f"{name}: {statistics.median(cpu[name]):.4f} ms of CPU time a chunk, {ratio:.2f}")
        print(f"{name}: {statistics.median(first[name]):.2f} ms to the first token, {later:+.2f}")


def streams(servers: dict[str, Server]) -> None:
    """Many streams at once."""
    for name, server in servers.items():
        whole = server.ask(MANY, MANY, 50)["whole"]
        print(f"{name}: {whole} of {MANY} streams at once, {server.most_memory:.0f} MB")


def requests(servers: dict[str, Server]) -> None:
    """Many requests that are not streamed."""
    for name, server in servers.items():
        for part in range(5):
            found = server.ask(server.requests // 5, 32, 0)
            rate, done = found["whole"] / found["seconds"], (part + 1) * server.requests // 5
            memory = f"{server.memory:.0f} MB, at most {server.most_memory:.0f}"
            print(f"{name}: {done} requests, {found['whole']} whole, {rate:.0f}/s, {memory}")


if __name__ == "__main__":
    main()
