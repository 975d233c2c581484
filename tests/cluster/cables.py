"""Simulates bad cables: halves that lose frames, delay them, or have little bandwidth.

The kernel's netem is not available everywhere. Instead, while a half is bad, a program forwards
frames between its two ends in place of a bridge; at other times no frame is slowed down. Run as a
program, this module is that forwarder: it exits when its input closes.
"""

import argparse
import array
import fcntl
import random
import selectors
import socket
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from generator.verify.namespaces import VirtualFabric

# From linux/if_packet.h, linux/sockios.h and linux/ethtool.h.
_ALL_FRAMES, _SOL_PACKET, _PACKET_IGNORE_OUTGOING = 3, 263, 23
_ETHTOOL, _SET_TX_CHECKSUM = 0x8946, 0x17
_LONGEST = 1 << 17
# Seconds that a frame may queue for a slow wire; a frame that would wait longer is dropped.
_BACKLOG = 2


@dataclass(frozen=True)
class Fault:
    """What is wrong with a half, in both directions; 0 means nothing."""

    loss: float = 0
    delay: float = 0
    bits_per_second: float = 0


@contextmanager
def bad(
    network: "VirtualFabric", node: str, interfaces: Sequence[str], fault: Fault
) -> Iterator[None]:
    """Make the halves at a node's interfaces bad while the context lasts."""
    with ExitStack() as mended:
        for interface in interfaces:
            mended.enter_context(_bad(network, node, interface, fault))
        yield


@contextmanager
def _bad(network: "VirtualFabric", node: str, interface: str, fault: Fault) -> Iterator[None]:
    # The program has nothing but the standard library.
    import recabling

    ends = recabling.ends(network, node, interface)
    for owner, name in ends:
        _send_whole_frames(network.namespace(owner), name, wanted=True)
    try:
        with recabling.opened(network, node, interface) as (hub, plugs), _joined(hub, plugs, fault):
            yield
    finally:
        for owner, name in ends:
            _send_whole_frames(network.namespace(owner), name, wanted=False)


@contextmanager
def _joined(hub: str, plugs: Sequence[str], fault: Fault) -> Iterator[None]:
    options = (f"--{name.replace('_', '-')}={value}" for name, value in vars(fault).items())
    argv = ("ip", "netns", "exec", hub, sys.executable, __file__, *options, *plugs)
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdin
        assert program.stdout
        try:
            assert program.stdout.readline() == b"joined\n"
            yield
        finally:
            program.stdin.close()


def _send_whole_frames(namespace: str, interface: str, wanted: bool) -> None:
    """Have an interface send whole frames, with checksums, as they would go over a wire."""
    inside = ("nsenter", f"--net=/run/netns/{namespace}")
    argv = (*inside, sys.executable, __file__, f"--whole-frames={int(wanted)}", interface)
    subprocess.run(argv, check=True)


class _Way:
    """Forwards frames from one end to the other."""

    def __init__(self, source: socket.socket, target: socket.socket, fault: Fault) -> None:
        self.source, self.target, self.fault = source, target, fault
        self.waiting: deque[tuple[float, bytes]] = deque()
        self._is_free_at = 0.0

    def take(self, now: float) -> None:
        """Read a frame from its end: drop it, or schedule its delivery at the other end."""
        frame = self.source.recv(_LONGEST)
        if random.random() < self.fault.loss or self._is_free_at > now + _BACKLOG:
            return
        if rate := self.fault.bits_per_second:
            self._is_free_at = max(now, self._is_free_at) + len(frame) * 8 / rate
        self.waiting.append((max(now, self._is_free_at) + self.fault.delay, frame))

    def hand_over(self, now: float) -> None:
        """Deliver what is due by now."""
        while self.waiting and self.waiting[0][0] <= now:
            _, frame = self.waiting.popleft()
            try:
                self.target.send(frame)
            except OSError:
                # The frame is too long for the other end, or that end is down.
                continue


def _join(plugs: Sequence[str], fault: Fault) -> None:
    a, b = (_end(plug) for plug in plugs)
    ways = (_Way(a, b, fault), _Way(b, a, fault))
    with selectors.DefaultSelector() as ready:
        for way in ways:
            ready.register(way.source, selectors.EVENT_READ, way)
        ready.register(sys.stdin, selectors.EVENT_READ)
        print("joined", flush=True)
        while True:
            due = min((way.waiting[0][0] for way in ways if way.waiting), default=None)
            limit = None if due is None else max(0, due - time.monotonic())
            for key, _ in ready.select(limit):
                if key.data is None:
                    return
                key.data.take(time.monotonic())
            for way in ways:
                way.hand_over(time.monotonic())


def _end(plug: str) -> socket.socket:
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_FRAMES))
    # Otherwise it would receive the frames that it sends.
    end.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
    end.bind((plug, _ALL_FRAMES))
    return end


def _set_whole_frames(interface: str, wanted: bool) -> None:
    value = array.array("I", [_SET_TX_CHECKSUM, int(not wanted)])
    request = struct.pack("16sP", interface.encode(), value.buffer_info()[0])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _ETHTOOL, request.ljust(40, b"\0"))


def _main() -> None:
    parser = argparse.ArgumentParser(prog=Path(__file__).name)
    parser.add_argument("--whole-frames", type=int)
    for name in ("loss", "delay", "bits-per-second"):
        parser.add_argument(f"--{name}", type=float, default=0)
    parser.add_argument("plugs", nargs="+")
    options = parser.parse_args()
    if options.whole_frames is not None:
        _set_whole_frames(*options.plugs, wanted=bool(options.whole_frames))
    else:
        _join(options.plugs, Fault(options.loss, options.delay, options.bits_per_second))


if __name__ == "__main__":
    _main()
