"""What hostile clients get from the gateway: requests as bytes, and the statuses of the answers.

Whatever they send, no engine gets another path, another client's key or a second request, and the
gateway goes on.
"""

import base64
import json
import subprocess
from collections.abc import Iterator

import pytest
from gateway_node import PROXY, Node, started
from proxied import entering
from waiting import PATIENCE

# Sends each request on a connection of its own; prints what comes back until that is closed.
_SEND = """\
import base64, json, socket, sys
host, port, seconds = sys.argv[1:]
answers = []
for request in json.load(sys.stdin):
    with socket.create_connection((host, int(port)), float(seconds)) as connection:
        text = b""
        try:
            connection.sendall(base64.b64decode(request))
            while data := connection.recv(65536):
                text += data
        except OSError:
            pass
    answers.append(base64.b64encode(text).decode())
print(json.dumps(answers))
"""

CHAT = "/v1/chat/completions"
BODY = b'{"model": "assistant", "messages": []}'
KEY = b"Authorization: Bearer KEY"


def post(path: str = CHAT, body: bytes = BODY, *headers: bytes, key: bytes = KEY) -> bytes:
    """A request whose connection ends after it."""
    length = b"Content-Length: %d" % len(body)
    lines = [b"POST %s HTTP/1.1" % path.encode(), b"Host: x", b"Connection: close", length]
    return b"\r\n".join([*lines, *([key] if key else []), *headers, b"", b""]) + body


def raw(start: bytes, *lines: bytes, body: bytes = b"") -> bytes:
    return b"\r\n".join([start, b"Host: x", b"Connection: close", *lines, b"", b""]) + body


def chat(body: bytes) -> bytes:
    return post(CHAT, body)


def form(*parts: bytes, boundary: bytes = b"b") -> bytes:
    body = b"".join(b"--" + boundary + b"\r\n" + part + b"\r\n" for part in parts)
    kind = b"Content-Type: multipart/form-data; boundary=" + boundary
    return post("/v1/audio/transcriptions", body + b"--" + boundary + b"--\r\n", kind)


DISPOSITION = b"Content-Disposition: form-data; "


def field(name: bytes, value: bytes) -> bytes:
    return DISPOSITION + b'name="%s"\r\n\r\n%s' % (name, value)


# Heads of a part that parsers of mail read as one of the field `model`.
HIDDEN_MODELS = (
    DISPOSITION + b"name*=utf-8''model",
    DISPOSITION + b"name*0=mod; name*1=el",
    DISPOSITION + b'\tname="model"',
    DISPOSITION + b'name = "model"',
    DISPOSITION + b'name="mod\\el"',
    DISPOSITION + b'\r\n name="model"',
    DISPOSITION + b'name="x"; name="model"',
    DISPOSITION + b'filename=a; x; name="model"',
    DISPOSITION + b'name="x"\r\n' + DISPOSITION + b'name="model"',
    b'Content-Disposition : form-data; name="model"',
    b"X: --b\r\n" + DISPOSITION + b'name="model"',
    b"X: %s\r\n" % (b"a" * 5000) + DISPOSITION + b'name="model"',
    b"X: none",
)
LONG = b'{"messages": [{"role": "user", "content": "%s"}], "model": "assistant"}' % (
    b"x" * 3_000_000
)
CHUNKED = b"Transfer-Encoding: chunked"
HIDDEN = b"POST /v1/load_lora_adapter HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"

# Paths of an engine or of nginx that are closed, however they are written.
CLOSED = {
    path: post(path)
    for path in (
        *("/v1/load_lora_adapter", "/v1/../pause", "/pause%2f..%2fv1/models", "/%2e%2e/etc/passwd"),
        *("/v1/chat/completions/../../../pause", "/v1/chat/completions/", "/V1/CHAT/completions"),
        *("/v1/chat/completions%00", "/v1/chat/completions%0d%0aX:1", "/v1/chat/completions;x"),
        *("//v1//chat//completions/x", "/v1/responses/a/b/cancel", "/v1/responses/../models/x"),
        *("/@chat", "/@failed", "/invocations", "/v1/chat/completions%20HTTP/1.1%0d%0aA:b"),
    )
}
UNAUTHORIZED = {
    "no key": post(key=b""),
    "empty key": post(key=b"Authorization: Bearer "),
    "key of another scheme": post(key=b"Authorization: Basic KEY"),
    "key and more": post(key=KEY + b"x"),
    "two keys in one": post(key=KEY + b" KEY"),
    "key as a pattern": post(key=b"Authorization: Bearer .*"),
    "hash of the key": post(key=b"Authorization: Bearer HASH"),
    "name of an object's property": post(key=b"Authorization: Bearer __proto__"),
    "engine's key": post(key=b"Authorization: Bearer secret-vllm_api_key"),
    "wrong key beside the right one": post(CHAT, BODY, b"X-Api-Key: KEY", key=KEY + b"x"),
    "key in the query": post(CHAT + "?key=KEY&api_key=KEY", key=b""),
    "body of 64 MB announced without a key": raw(
        b"POST /v1/chat/completions HTTP/1.1", b"Content-Length: 60000000"
    ),
}
MALFORMED = {
    "length and chunks": raw(
        b"POST /v1/chat/completions HTTP/1.1", KEY, CHUNKED, b"Content-Length: 5", body=b"0\r\n\r\n"
    ),
    "two lengths": post(CHAT, BODY, b"Content-Length: 0"),
    "negative length": raw(b"POST /v1/chat/completions HTTP/1.1", KEY, b"Content-Length: -1"),
    "length that is no number": raw(b"POST /v1/x HTTP/1.1", KEY, b"Content-Length: 0x10"),
    "chunk of a wrong size": raw(
        b"POST /v1/chat/completions HTTP/1.1", KEY, CHUNKED, body=b"zz\r\nabc\r\n0\r\n\r\n"
    ),
    "two keys": post(CHAT, BODY, KEY),
    "header of 100 KB": post(CHAT, BODY, b"X: " + b"a" * 100_000),
    "no host": b"POST /v1/chat/completions HTTP/1.1\r\n\r\n",
    "a zero byte in a header": post(CHAT, BODY, b"X: a\0b"),
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
}
UNCLEAR = {
    "no model": chat(b'{"messages": []}'),
    "model that is a number": chat(b'{"model": 1e999}'),
    "model that is a list": chat(b'{"model": ["assistant"]}'),
    "model that is null": chat(b'{"model": null}'),
    "model of a nested object": chat(b'{"metadata": {"model": "assistant"}}'),
    "model within a string": chat(b'{"x": "\\"model\\": \\"assistant\\""}'),
    "list instead of an object": chat(b'["model", "assistant"]'),
    "no JSON": chat(b"model=assistant"),
    "empty body": chat(b""),
    "UTF-16": chat('{"model": "assistant"}'.encode("utf-16")),
    "60 MB of brackets": chat(b'{"x": [' + b"[]," * 4_000_000 + b'[]], "model": "assistant"}'),
    "a million keys": chat(b"{" + b'"a":1,' * 1_000_000 + b'"model": "assistant"}'),
    "name of 2 KB": chat(b'{"model": "%s"}' % (b"a" * 2000)),
    "form with two models": form(field(b"model", b"assistant"), field(b"model", b"gpt-oss-20b")),
    "form of 1000 parts": form(*[field(b"x", b"y")] * 1000),
    # What an engine would read, and the gateway did not.
    **{
        f"form with a part {number}": form(field(b"model", b"assistant"), part + b"\r\n\r\nnobody")
        for number, part in enumerate(HIDDEN_MODELS)
    },
    "form before a form": post(
        "/v1/audio/transcriptions",
        b"--b\r\n" + field(b"model", b"assistant") + b"\r\n--b--",
        b"Content-Type: multipart/form-data; boundary=a; boundary=b",
    ),
    "form behind a preamble": post(
        "/v1/audio/transcriptions",
        b"x\r\n--b\r\n" + field(b"model", b"assistant") + b"\r\n--b--",
        b"Content-Type: multipart/form-data; boundary=b",
    ),
    "fields of a URL before JSON": post(
        "/v1/audio/transcriptions",
        b'model=nobody&x={"model": "assistant"}',
        b"Content-Type: application/x-www-form-urlencoded",
    ),
    "text before JSON": chat(b'model=nobody&x={"model": "assistant"}'),
    "text behind JSON": chat(b'{"model": "assistant"}&model=nobody'),
    "two objects": chat(b'{"model": "assistant"}{"model": "nobody"}'),
    "form without an end": post(
        "/v1/audio/transcriptions", b"--b\r\n", b"Content-Type: multipart/form-data; boundary=b"
    ),
}
UNKNOWN = {
    "property of objects": chat(b'{"model": "__proto__"}'),
    "constructor": chat(b'{"model": "constructor"}'),
    "two models, the last one unknown": chat(b'{"model": "assistant", "model": "nobody"}'),
    "escaped key, which counts": chat(b'{"model": "assistant", "\\u006dodel": "nobody"}'),
    "name with a line break": chat(b'{"model": "a\\r\\nX-Evil: 1"}'),
    "response of nobody": post("/v1/responses/resp_none/cancel"),
}
# They reach the engine as they came.
PASSED = {
    "two models, the last one known": chat(b'{"model": "nobody", "model": "assistant"}'),
    "escaped model": chat(b'{"mod\\u0065l": "\\u0061ssistant"}'),
    "10,000 levels": chat(b'{"x":' + b"[" * 10_000 + b"]" * 10_000 + b', "model": "assistant"}'),
    "huge number": chat(b'{"x": ' + b"9" * 10_000 + b', "model": "assistant"}'),
    "quotes and backslashes": chat(b'{"x": "' + b'\\\\\\"' * 50_000 + b'", "model": "assistant"}'),
    "no UTF-8": chat(b'{"x": "\xff\xfe", "model": "assistant"}'),
    "chunks": raw(
        b"POST /v1/chat/completions HTTP/1.1",
        KEY,
        CHUNKED,
        body=b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY),
    ),
    "second request behind the body": post(CHAT, BODY) + HIDDEN,
    "headers of a proxy": post(CHAT, BODY, b"X-Accel-Redirect: /@chat", b"X-Forwarded-For: x"),
    "header with another spelling": post(CHAT, BODY, b"X_Api_Key: KEY", b"Connection: X-Api-Key"),
    "form with a name in the file": form(
        field(b"model", b"assistant"), field(b"file", b'name="model"\r\n\r\nnobody')
    ),
    "type that curl sends": post(CHAT, BODY, b"Content-Type: application/x-www-form-urlencoded"),
    "mark of the byte order": chat(b"\xef\xbb\xbf" + BODY),
    "form of other clients": form(
        DISPOSITION + b"name=file; filename=a.wav; filename*=utf-8''a.wav\r\n\r\nx",
        b"Content-Type: text/plain\r\n" + field(b"model", b"assistant"),
        DISPOSITION + b'name="file"; filename="a\\"; name=model"\r\n\r\nx--b\r\n',
        field(b"empty", b""),
    ),
    # Larger than the first read, with the model where the body ends.
    "long": chat(LONG),
    "long-chunked": raw(
        b"POST /v1/chat/completions HTTP/1.1",
        *(KEY, CHUNKED),
        body=b"".join(
            b"%x\r\n%s\r\n" % (len(part), part)
            for part in (LONG[at : at + 50_000] for at in range(0, len(LONG), 50_000))
        )
        + b"0\r\n\r\n",
    ),
    "other-case-of-a-header": post(CHAT, BODY, key=b"aUTHORIZATION: bearer KEY"),
    "upgrade": post(CHAT, BODY, b"Upgrade: websocket", b"X-Y: Upgrade"),
    "range": post(CHAT, BODY, b"Range: bytes=0-1"),
}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with started(tmp_path_factory.mktemp("attacked")) as node:
        yield node


def answers(gateway: Node, requests: dict[str, bytes]) -> dict[str, bytes]:
    """What comes back for each request."""
    hashed = gateway.run("cat", "/etc/sparkgen/proxy.keys").partition("=")[2].split()[0]
    known = ((b"KEY", gateway.key.encode()), (b"HASH", hashed.encode()))
    sent = []
    for request in requests.values():
        for word, value in known:
            request = request.replace(word, value)
        sent.append(base64.b64encode(request).decode())
    host, _, port = PROXY.url.removeprefix("http://").partition(":")
    argv = [*entering(gateway.holder), "python3", "-c", _SEND, host, port, str(PATIENCE // 2)]
    done = subprocess.run(
        argv, input=json.dumps(sent), capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(requests, map(base64.b64decode, json.loads(done.stdout)), strict=True))


def statuses(gateway: Node, requests: dict[str, bytes]) -> dict[str, int]:
    """The status of each answer, 0 if there is none; nobody gets a key or a second answer."""
    found = {}
    for name, answer in answers(gateway, requests).items():
        assert answer.count(b"HTTP/1.1 ") <= 1, name
        assert b"X-Evil" not in answer.partition(b"\r\n\r\n")[0]
        for secret in (b"secret-vllm", gateway.key.encode()):
            assert secret not in answer, name
        found[name] = int(answer.split()[1]) if answer.startswith(b"HTTP/") else 0
    return found


# Announces large bodies at once; prints the statuses that come before them.
_ANNOUNCE = """\
import json, select, socket, sys
host, port, key, count, length = sys.argv[1:]
start = "POST /v1/chat/completions HTTP/1.1\\r\\nHost: x\\r\\nAuthorization: Bearer %s\\r\\n"
keys = key.split(",")
open_ones = [socket.create_connection((host, int(port))) for _ in range(int(count))]
for number, each in enumerate(open_ones):
    head = start % keys[number % len(keys)]
    each.sendall((head + length + "\\r\\n\\r\\n").encode())
found = []
while ready := select.select(open_ones, [], [], 2)[0]:
    found += [each.recv(65536).split()[1].decode() for each in ready]
    open_ones = [each for each in open_ones if each not in ready]
print(json.dumps(found))
"""


@pytest.mark.parametrize("length", ["Content-Length: 60000000", "Transfer-Encoding: chunked"])
def test_large_bodies_do_not_fill_the_memory(gateway: Node, length: str) -> None:
    """Of many at once, some are told to come later; small ones are served."""
    host, _, port = PROXY.url.removeprefix("http://").partition(":")
    both = f"{gateway.key},{gateway.add(f'large-{length[0]}')}"
    # One client gets 16 of the 24.
    for keys, refused in ((gateway.key, 14), (both, 6)):
        told = gateway.run("python3", "-c", _ANNOUNCE, host, port, keys, "30", length)
        assert json.loads(told) == ["429"] * refused
    assert gateway.chat("hello").status == 200


def requests(gateway: Node) -> int:
    names = ("chat", "chat-b", "embed")
    return sum(int(gateway.of_engine(name, "/requests")) for name in names)


@pytest.mark.parametrize(
    ("attacks", "allowed"),
    [
        (CLOSED, {400, 404}),
        (UNAUTHORIZED, {401}),
        (MALFORMED, {0, 400, 411}),
        (UNCLEAR, {400}),
        (UNKNOWN, {404}),
    ],
    ids=["closed", "unauthorized", "malformed", "unclear", "unknown"],
)
def test_refused(gateway: Node, attacks: dict[str, bytes], allowed: set[int]) -> None:
    """No engine hears of it."""
    before = requests(gateway)
    found = statuses(gateway, attacks)
    assert {name: status for name, status in found.items() if status not in allowed} == {}
    assert requests(gateway) == before
    assert gateway.chat("hello").status == 200


def test_passed_on_as_it_came(gateway: Node) -> None:
    """Once each, on the path that was asked, with nothing of the client's key."""
    before = requests(gateway)
    found = statuses(gateway, PASSED)
    assert set(found.values()) == {200}, found
    assert requests(gateway) == before + len(PASSED)
    for name in ("chat", "chat-b"):
        last = gateway.of_engine(name, "/last")
        assert last["path"] in (CHAT, "/v1/audio/transcriptions")
        assert gateway.key not in json.dumps(last["headers"])
