#!/usr/bin/python3
"""Replaces PyTorch's torchrun: the same options, the same meeting, and one rank without PyTorch.

Like the real one with a static rendezvous, the first node listens at the port, all wait until
everybody is there, and each runs the program with PyTorch's variables.
"""

import argparse
import os
import socket
import subprocess
import sys
import time

parser = argparse.ArgumentParser(allow_abbrev=False)
for name in ("nnodes", "nproc-per-node", "node-rank", "master-port", "max-restarts"):
    parser.add_argument(f"--{name}", type=int, required=True)
parser.add_argument("--master-addr", required=True)
parser.add_argument("--no-python", action="store_true")
parser.add_argument("--module", action="store_true")
parser.add_argument("program")
parser.add_argument("arguments", nargs=argparse.REMAINDER)
given = parser.parse_args()
assert (given.nproc_per_node, given.max_restarts) == (1, 0)

place = (given.master_addr, given.master_port)
if given.node_rank == 0:
    with socket.create_server(place) as server:
        others = [server.accept()[0] for _ in range(given.nnodes - 1)]
        for other in others:
            other.sendall(b"all")
else:
    deadline = time.monotonic() + 120
    while True:
        try:
            with socket.create_connection(place, 5) as meeting:
                assert meeting.recv(3) == b"all"
            break
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.1)

variables = {
    "RANK": str(given.node_rank),
    "WORLD_SIZE": str(given.nnodes),
    "LOCAL_RANK": "0",
    "MASTER_ADDR": given.master_addr,
    "MASTER_PORT": str(given.master_port),
}
python = [] if given.no_python else [sys.executable, *(["-m"] if given.module else [])]
argv = [*python, given.program, *given.arguments]
status = subprocess.run(argv, env=os.environ | variables).returncode
# The agent reports a program that a signal ended as a failure of its own.
sys.exit(1 if status else 0)
