#!/usr/bin/python3
"""Stand-in for llama.cpp where it is not built: two programs, selected by the name it is run by.

It has the options, ports and failures of the real one. Each token makes a round trip to every
worker, so completions need all ranks; the head aborts when one is lost.
"""

import json
import os
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def option(name: str) -> str:
    """The argument of an option."""
    return sys.argv[sys.argv.index(name) + 1]


def serve_rpc() -> None:
    """A worker: serves one head after another, each until it disconnects."""
    with socket.create_server((option("--host"), int(option("--port")))) as server:
        while True:
            connection, _ = server.accept()
            with connection:
                while token := connection.recv(1):
                    connection.sendall(token)


class Head:
    """The ranks that the API computes with."""

    def __init__(self) -> None:
        ends = (end.rpartition(":") for end in option("--rpc").split(","))
        self.workers = [socket.create_connection((host, int(port))) for host, _, port in ends]
        self.turn = threading.Lock()
        self.decoded = 0

    def decode(self) -> None:
        """One token, computed by all ranks."""
        with self.turn:
            for worker in self.workers:
                try:
                    worker.sendall(b"t")
                    answer = worker.recv(1)
                except OSError:
                    answer = b""
                if not answer:
                    print("Remote RPC server crashed or returned malformed response", flush=True)
                    os.abort()
            self.decoded += 1


def serve_api() -> None:
    """The head."""
    head = Head()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/metrics":
                self.answer(f"llamacpp:n_decode_total {head.decoded}\n")
            else:
                self.answer('{"status":"ok"}')

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            tokens = body.get("max_tokens", 1)
            for _ in range(tokens):
                head.decode()
            self.answer(json.dumps({"usage": {"completion_tokens": tokens}}, separators=(",", ":")))

        def answer(self, text: str) -> None:
            data = text.encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_request(self, *_: object) -> None:
            """Log nothing."""

    ThreadingHTTPServer((option("--host"), int(option("--port"))), Handler).serve_forever()


if __name__ == "__main__":
    if "--help" in sys.argv:
        sys.exit()
    serve_rpc() if sys.argv[0].endswith("rpc-server") else serve_api()
