"""A program that answers requests like an engine: fake_engine.py ADDRESS PORT NAME.

The prompt decides the answer: `slow` takes a while, `failing` returns 500, `cut` ends a stream in
the middle, and `close` does the same where the end of the connection is also the end of the answer.
`/requests` returns the number of requests so far, and `/last` the last one with its key.
"""

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

    def do_GET(self) -> None:
        answers: dict[str, Any] = {
            "/health": {},
            "/metrics": {"metrics": NAME, "key": self.headers["Authorization"]},
            "/v1/models": {"object": "list", "data": [{"id": NAME, "object": "model"}]},
            "/requests": Engine.requests,
            "/last": Engine.last,
        }
        self.answer(200 if self.path in answers else 404, answers.get(self.path))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = str(body.get("messages") or body.get("prompt") or body.get("input"))
        # The gateway's own requests do not come from a client.
        if body.get("max_tokens") != 1 and "test from litellm" not in text:
            Engine.requests += 1
            Engine.last = {"path": self.path, "key": self.headers["Authorization"], "body": body}
        if "slow" in text:
            time.sleep(0.2)
        if "failing" in text:
            self.answer(500, {"error": {"message": "out of memory", "code": 500}})
        elif self.path == "/v1/embeddings":
            data = [{"object": "embedding", "index": 0, "embedding": [0.5]}]
            usage = {"prompt_tokens": 1, "total_tokens": 1}
            self.answer(200, {"object": "list", "model": NAME, "data": data, "usage": usage})
        elif body.get("stream"):
            self.stream("cut" in text, "close" in text)
        else:
            message = {"role": "assistant", "content": ADDRESS}
            self.answer(200, whole([{"index": 0, "message": message, "finish_reason": "stop"}]))

    def stream(self, is_cut: bool, is_ended_by_close: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        if is_ended_by_close:
            self.send_header("Connection", "close")
        else:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number in range(PARTS):
            if number and (is_cut or is_ended_by_close):
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
        is_bare = self.close_connection
        self.wfile.write(data if is_bare else b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def answer(self, status: int, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send_header(self, keyword: str, value: str) -> None:
        # The base class does this only for requests of clients.
        if (keyword, value) == ("Connection", "close"):
            self.close_connection = True
        super().send_header(keyword, value)

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
