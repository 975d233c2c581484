"""Sends requests from several nodes at once, and records how each of them ends.

Run as a program, it is the clients of one node: it reads the load and prints a line per answer.
"""

import json
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any

# How a request ends: complete, cut off midway, with an error before any token, or without end.
SERVED, CUT, REFUSED, HANGS = "served", "cut", "refused", "hangs"


@dataclass(frozen=True)
class Answer:
    """How a request ended, and after how many seconds."""

    end: str
    seconds: float


@dataclass(frozen=True)
class Load:
    """A number of chat streams; a client gives up after `limit` seconds without data."""

    url: str
    body: Mapping[str, object]
    count: int
    clients: int
    limit: float
    key: str = ""

    def send(self, places: Sequence[Sequence[str]], halfway: Callable[[], object]) -> list[Answer]:
        """Send it from the prefixes' networks, and do something once half of it is answered."""
        answers: list[Answer] = []
        turn = threading.Lock()

        def listen(clients: "subprocess.Popen[str]") -> None:
            assert clients.stdout
            for line in clients.stdout:
                with turn:
                    answers.append(Answer(*json.loads(line)))
                    is_half = len(answers) == self.count // 2
                if is_half:
                    halfway()

        with ExitStack() as stack, ThreadPoolExecutor(len(places)) as pool:
            started = [stack.enter_context(self._start(place)) for place in places]
            for number, clients in enumerate(started):
                self._send(clients, number, len(places))
            list(pool.map(listen, started))
        return answers

    def _start(self, place: Sequence[str]) -> "subprocess.Popen[str]":
        argv = (*place, sys.executable, __file__)
        return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def _send(self, clients: "subprocess.Popen[str]", number: int, places: int) -> None:
        job = {
            "url": self.url,
            "body": {**self.body, "stream": True},
            "prompts": [str(each) for each in range(number, self.count, places)],
            "clients": self.clients // places,
            "limit": self.limit,
            "key": self.key,
        }
        assert clients.stdin
        with clients.stdin as file:
            json.dump(job, file)


def _ask_all(job: Mapping[str, Any]) -> None:
    turn = threading.Lock()

    def ask(prompt: str) -> None:
        start = time.monotonic()
        question = [{"role": "user", "content": prompt}]
        body = {**job["body"], "messages": question}
        end = _ask(job["url"], body, job["key"], job["limit"])
        with turn:
            print(json.dumps([end, time.monotonic() - start]), flush=True)

    with ThreadPoolExecutor(job["clients"]) as pool:
        list(pool.map(ask, job["prompts"]))


def _ask(url: str, body: Mapping[str, object], key: str, limit: float) -> str:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        answer = urllib.request.urlopen(request, timeout=limit)
    except (OSError, HTTPException) as error:
        return HANGS if _is_timeout(error) else REFUSED
    try:
        with answer:
            text = answer.read()
    except (OSError, HTTPException) as error:
        return HANGS if _is_timeout(error) else CUT
    # An engine that dies may close its streams cleanly and report the error in them.
    return SERVED if b"[DONE]" in text and b'"error"' not in text else CUT


def _is_timeout(error: Exception) -> bool:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    return isinstance(reason, TimeoutError)


if __name__ == "__main__":
    _ask_all(json.load(sys.stdin))
