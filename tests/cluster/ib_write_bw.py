#!/usr/bin/python3
"""Stand-in for perftest's ib_write_bw without RDMA: measures TCP, and reports Mb/s as Gb/s.

A server, whose last argument is not an address, ends with its client.
"""

import socket
import sys
import threading
import time

# Seconds to warm up, not counted because of what was queued, and seconds to measure.
WARM, SECONDS = 1, 3


def receive(connection: socket.socket) -> float:
    """Megabits received per second."""
    begin = time.monotonic() + WARM
    received = 0
    while (now := time.monotonic()) < begin + SECONDS:
        size = len(connection.recv(1 << 16))
        received += size if now >= begin else 0
    return received * 8 / SECONDS / 1e6


def send(connection: socket.socket) -> None:
    """Send until the other end closes."""
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
    """Receive, and report how much; on a second connection, send."""
    with socket.create_server(("", port)) as server:
        taking, _ = server.accept()
        if ways == 2:
            giving, _ = server.accept()
            threading.Thread(target=send, args=[giving], daemon=True).start()
        taking.sendall(f"{receive(taking)}\n".encode())
        taking.shutdown(socket.SHUT_WR)
        time.sleep(WARM)


def ask(address: str, port: int, is_both_ways: bool) -> float:
    """The megabits per second that the server received, plus those that it sent."""
    giving = socket.create_connection((address, port))
    back = socket.create_connection((address, port)) if is_both_ways else None
    threading.Thread(target=send, args=[giving], daemon=True).start()
    received = receive(back) if back else 0
    with giving.makefile() as answer:
        return received + float(answer.readline())


if __name__ == "__main__":
    main()
