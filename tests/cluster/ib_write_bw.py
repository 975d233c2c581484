#!/usr/bin/python3
"""Stands for perftest's ib_write_bw where there is no RDMA: it measures TCP, and calls Mb/s Gb/s.

A server, which has no address as its last word, ends with its client.
"""

import socket
import sys
import threading
import time

# Before a measurement, and for it: what was in queues is not counted.
WARM, SECONDS = 1, 3


def receive(connection: socket.socket) -> float:
    """Megabits a second that come in."""
    begin = time.monotonic() + WARM
    received = 0
    while (now := time.monotonic()) < begin + SECONDS:
        size = len(connection.recv(1 << 16))
        received += size if now >= begin else 0
    return received * 8 / SECONDS / 1e6


def send(connection: socket.socket) -> None:
    """Until the other end has had enough."""
    try:
        while True:
            connection.sendall(bytes(1 << 14))
    except OSError:
        connection.close()


def main() -> None:
    port = next(int(word.partition("=")[2]) for word in sys.argv if word.startswith("--port="))
    is_both_ways = "--bidirectional" in sys.argv
    if sys.argv[-1].startswith("--"):
        serve(port, 2 if is_both_ways else 1)
    else:
        rates = ask(sys.argv[-1], port, is_both_ways)
        print(f" 65536      1000             0.00               {rates:.2f}             0.01")


def serve(port: int, ways: int) -> None:
    """Take in what comes, and say how much; on a second connection, send."""
    with socket.create_server(("", port)) as server:
        taking, _ = server.accept()
        if ways == 2:
            giving, _ = server.accept()
            threading.Thread(target=send, args=[giving], daemon=True).start()
        taking.sendall(f"{receive(taking)}\n".encode())
        taking.shutdown(socket.SHUT_WR)
        time.sleep(WARM)


def ask(address: str, port: int, is_both_ways: bool) -> float:
    """What the server has taken in, and what has come from it."""
    giving = socket.create_connection((address, port))
    back = socket.create_connection((address, port)) if is_both_ways else None
    threading.Thread(target=send, args=[giving], daemon=True).start()
    own = receive(back) if back else 0
    with giving.makefile() as answer:
        return own + float(answer.readline())


if __name__ == "__main__":
    main()
