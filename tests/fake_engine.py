"""A program that answers requests like an engine: fake_engine.py ADDRESS PORT NAME.

The prompt decides the answer: `slow` takes a while, `failing` returns 500, `busy` 429, `cut` ends a
stream in the middle, `reset` ends the connection before an answer, `garbage` sends what is not
HTTP, and `half` a part of an answer's head. What is posted to `/fault` are the bytes that it sends
to all requests from then on, none for its own answers again, and `never` for no answer at all; to
`/adapters`, how many adapters it lists.
`/requests` returns the number of requests so far, and `/last` the last one: its path, headers and
body.
"""

import base64
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

ADDRESS, PORT, NAME = sys.argv[1], int(sys.argv[2]), sys.argv[3]
PARTS = 3


class Engine(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    requests = 0
    last: ClassVar[dict[str, Any]] = {}
    fault = b""
    adapters = 0

    def do_GET(self) -> None:
        models = [{"id": NAME, "max_model_len": 4096}]
        models += [{"id": f"adapter-{n}", "root": "x" * 90} for n in range(Engine.adapters)]
        answers: dict[str, Any] = {
            "/health": {},
            "/metrics": {"metrics": NAME, "key": self.headers["Authorization"]},
            "/v1/models": {"object": "list", "data": models},
            "/requests": Engine.requests,
            "/last": Engine.last,
        }
        if self.path.startswith("/v1/responses/"):
            return self.answer(200, {"id": self.path.rpartition("/")[2], "by": ADDRESS})
        return self.answer(200 if self.path in answers else 404, answers.get(self.path))

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path in ("/fault", "/adapters"):
            if self.path == "/fault":
                Engine.fault = raw
            else:
                Engine.adapters = int(raw)
            self.answer(200, {})
            return
        Engine.requests += 1
        Engine.last = {
            "path": self.path,
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "body": base64.b64encode(raw).decode(),
        }
        while Engine.fault == b"never":
            time.sleep(0.1)
        if Engine.fault:
            self.wfile.write(Engine.fault)
            self.close_connection = True
        else:
            self.answer_to(raw.decode(errors="replace"))

    def answer_to(self, text: str) -> None:
        if "slow" in text:
            time.sleep(0.2)
        for word, answer in (
            ("reset", b""),
            ("garbage", b"\x00\x01 not HTTP\r\n\r\n"),
            ("half", b"HTTP/1.1 200 OK\r\nContent-Le"),
        ):
            if f'"{word}"' in text:
                self.wfile.write(answer)
                self.close_connection = True
                return
        if '"failing"' in text or '"busy"' in text:
            status = 500 if '"failing"' in text else 429
            self.answer(status, {"error": {"message": "of the engine", "code": status}})
        elif self.path == "/v1/embeddings":
            data = [{"object": "embedding", "index": 0, "embedding": [0.5]}]
            usage = {"prompt_tokens": 1, "total_tokens": 1}
            self.answer(200, {"object": "list", "model": NAME, "data": data, "usage": usage})
        elif self.path == "/v1/responses":
            self.answer(200, {"id": f"resp_{NAME}{Engine.requests}", "output": []})
        elif '"stream": true' in text:
            self.stream("cut" in text)
        else:
            message = {"role": "assistant", "content": ADDRESS}
            self.answer(200, whole([{"index": 0, "message": message, "finish_reason": "stop"}]))

    def stream(self, is_cut: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number in range(PARTS):
            if number and is_cut:
                self.close_connection = True
                return
            self.part({"delta": {"content": f"{number} "}, "finish_reason": None})
            time.sleep(0.02)
        self.part({"delta": {}, "finish_reason": "stop"})
        self.chunk(b"data: [DONE]\n\n")
        self.chunk(b"")

    def part(self, choice: dict[str, Any]) -> None:
        event = {**whole([{"index": 0, **choice}]), "object": "chat.completion.chunk"}
        self.chunk(f"data: {json.dumps(event)}\n\n".encode())

    def chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def answer(self, status: int, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


def whole(choices: list[dict[str, Any]]) -> dict[str, Any]:
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    name = "chat.completion"
    return {"id": "x", "object": name, "created": 1, "model": NAME, "choices": choices} | (
        {"usage": usage} if "message" in choices[0] else {}
    )


class Server(ThreadingHTTPServer):
    request_queue_size = 512


if __name__ == "__main__":
    Server((ADDRESS, PORT), Engine).serve_forever()
