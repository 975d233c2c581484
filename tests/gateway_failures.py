"""What clients see when an engine fails: `PYTHONPATH=.:tests python tests/gateway_failures.py`.

200 streams are running, or begin, when an engine fails; 200 others begin ten seconds later. The
model has two replicas, or a single engine. Prints a row of the table in gateway.md for each.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import gateway_node
from bundles import BUILT
from gateway_node import PROXY, ROUTES, Node, started
from proxied import entering
from waiting import until

STREAMS = 200
WAITS, LATER = 20, 10
FAULTS = (
    *("kill", "hang", "refuse", "reset", "half-head", "head-only", "cut", "garbage", "tls"),
    *("error", "empty", "page", "half-open", "slow"),
)

# Answers with a stream of 3 s; /run/fault-PORT says what it does with requests instead.
ENGINE = """\
import asyncio, json, os, re, sys
ADDRESS, PORT, NAME = sys.argv[1], int(sys.argv[2]), sys.argv[3]
FAULT = f"/run/fault-{ADDRESS}-{PORT}"
PART = b'data: {"choices": [{"delta": {"content": "word "}}]}\\n\\n'
HEAD = b"HTTP/1.1 %d X\\r\\nContent-Type: %s\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n"
ANSWERS = {
    "garbage": b"\\0\\1 not HTTP\\r\\n\\r\\n",
    "tls": b"\\x15\\x03\\x01\\0\\2\\2\\x46",
    "half-head": b"HTTP/1.1 200 OK\\r\\nContent-Ty",
    "head-only": HEAD % (200, b"text/event-stream"),
    "cut": HEAD % (200, b"text/event-stream") + b"%x\\r\\n%s\\r\\n" % (len(PART), PART),
    "error": HEAD % (500, b"application/json") + b"2\\r\\n{}\\r\\n0\\r\\n\\r\\n",
    "empty": HEAD % (200, b"application/json") + b"0\\r\\n\\r\\n",
    "page": HEAD % (200, b"text/html") + b"6\\r\\n<html>\\r\\n0\\r\\n\\r\\n",
}
async def answer(reader, writer):
    head = await reader.readuntil(b"\\r\\n\\r\\n")
    size = re.search(rb"(?i)content-length: (\\d+)", head)
    await reader.readexactly(int(size[1]) if size else 0)
    fault = open(FAULT).read() if os.path.exists(FAULT) else ""
    if head.startswith(b"GET"):
        text = json.dumps({"data": [{"id": NAME}]}).encode()
        writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n%s" % (len(text), text))
    elif fault == "half-open":
        await asyncio.sleep(60)
    elif fault in ANSWERS:
        writer.write(ANSWERS[fault])
    elif fault == "reset":
        writer.transport.abort()
    else:
        await asyncio.sleep(8 if fault == "slow" else 0)
        writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Type: text/event-stream\\r\\n"
                     b"Transfer-Encoding: chunked\\r\\n\\r\\n")
        for _ in range(30):
            writer.write(b"%x\\r\\n%s\\r\\n" % (len(PART), PART))
            await writer.drain()
            await asyncio.sleep(0.1)
        writer.write(b"0\\r\\n\\r\\n")
    await writer.drain()
    writer.close()
async def main():
    server = await asyncio.start_server(answer, ADDRESS, PORT, backlog=4096)
    await server.serve_forever()
asyncio.run(main())
"""

# Begins streams within a second; prints how each ended.
CLIENT = """\
import asyncio, json, sys
host, port, key, model = sys.argv[1:5]
count, waits = int(sys.argv[5]), int(sys.argv[6])
text = json.dumps({"model": model, "messages": [], "stream": True}).encode()
request = (b"POST /v1/chat/completions HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n"
           b"Authorization: Bearer %s\\r\\nContent-Length: %d\\r\\n\\r\\n%s")
request %= (key.encode(), len(text), text)
async def ask(number):
    await asyncio.sleep(number / count)
    data = b""
    try:
        async with asyncio.timeout(waits):
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(request)
            while part := await reader.read(65536):
                data += part
            writer.close()
    except TimeoutError:
        return "no end" if data else "no answer"
    except OSError:
        pass
    if not data.startswith(b"HTTP/1.1 "):
        return "connection closed"
    status = data.split()[1].decode()
    if status == "200" and b"word" not in data:
        return "no content"
    return status if status != "200" else "whole" if data.endswith(b"0\\r\\n\\r\\n") else "broken"
async def main():
    print(json.dumps(await asyncio.gather(*map(ask, range(count)))))
asyncio.run(main())
"""


def streams(node: Node, model: str) -> "subprocess.Popen[str]":
    """Clients that begin their streams now."""
    host, _, port = PROXY.url.removeprefix("http://").partition(":")
    words = (host, port, node.key, model, str(STREAMS), str(WAITS))
    argv = [*entering(node.holder), sys.executable, "-c", CLIENT, *words]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def ends(client: "subprocess.Popen[str]") -> str:
    """How the streams of clients ended, with how many."""
    found = Counter(json.loads(client.communicate()[0]))
    return ", ".join(f"{count} {end}" for end, count in found.most_common())


@contextmanager
def failing(node: Node, fault: str, group: str) -> Iterator[None]:
    """An engine that fails in this way, and does not any more in the end."""
    file = "-".join(("/run/fault", *ROUTES[group].address.split(":")))
    if fault in ("kill", "refuse"):
        node.kill(group)
        yield
        node.engine(group)
    elif fault == "hang":
        node.engines[group].send_signal(signal.SIGSTOP)
        yield
        node.engines[group].send_signal(signal.SIGCONT)
    else:
        node.run("sh", "-c", f"printf %s {fault} >{file}")
        yield
        node.run("rm", file)


def row(node: Node, fault: str, group: str) -> str:
    """What clients see, in a row of a table."""
    model, is_running = ROUTES[group].names[0], fault in ("kill", "hang")
    client = streams(node, model) if is_running else None
    if client:
        time.sleep(2)
    left = "-"
    with failing(node, fault, group):
        start = time.monotonic()
        client = client or streams(node, model)
        if is_running or fault == "refuse":
            until(lambda: node.sample("up", group) == 0, interval=0.1)
            left = f"{time.monotonic() - start:.1f} s"
        first = ends(client)
        time.sleep(max(0, LATER - (time.monotonic() - start)))
        later = ends(streams(node, model))
    start = time.monotonic()
    until(lambda: node.sample("up", group) == 1, interval=0.1)
    back = f"{time.monotonic() - start:.1f} s" if left != "-" else "-"
    node.restart(group)
    return f"| {fault} | {first} | {later} | {left} | {back} |"


def main() -> None:
    """Print the rows."""
    gateway_node.ENGINE = ENGINE
    with TemporaryDirectory() as folder:
        os.environ[BUILT] = folder
        (Path(folder) / "node").mkdir()
        with started(Path(folder) / "node") as node:
            for title, group in (("two replicas", "chat-b"), ("a single engine", "embed")):
                print(f"\n| {title} | 200 streams | 10 s later | out after | back after |")
                print("|---|---|---|---|---|", flush=True)
                for fault in FAULTS:
                    print(row(node, fault, group), flush=True)


if __name__ == "__main__":
    main()
