"""Chromium without a window, asked over a pipe: real keys, as a person presses them."""

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

# The names of keys with what they write, as the protocol of the developer tools wants them.
_KEYS = {"Tab": ("", 9), "Enter": ("\r", 13)}


@dataclass
class Browser:
    """A page that is open."""

    commands: IO[bytes]
    answers: IO[bytes]
    session: str = ""
    count: int = 0

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer to one command."""
        self.count += 1
        session = {"sessionId": self.session} if self.session else {}
        command = {"id": self.count, "method": method, "params": params, **session}
        self.commands.write(json.dumps(command).encode() + b"\0")
        self.commands.flush()
        while True:
            message = b"".join(iter(lambda: self.answers.read(1), b"\0"))
            if (answer := json.loads(message)).get("id") == self.count:
                return dict(answer["result"])

    def press(self, key: str) -> None:
        """Press a key and let it go."""
        text, code = _KEYS[key]
        named = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.ask("Input.dispatchKeyEvent", type="keyDown", text=text, **named)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **named)

    def value(self, expression: str) -> Any:
        """What an expression is on the page."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        return found["result"].get("value")


@contextmanager
def opened(command: Sequence[str], url: str) -> Iterator[Browser]:
    """A page in a browser of its own, which ends with it."""
    read_commands, commands = os.pipe()
    answers, write_answers = os.pipe()
    script = f'exec 3<&{read_commands} 4>&{write_answers}; exec "$@" --remote-debugging-pipe'
    process = subprocess.Popen(
        ["bash", "-c", script, "bash", *command],
        pass_fds=(read_commands, write_answers),
        stderr=subprocess.DEVNULL,
    )
    os.close(read_commands)
    os.close(write_answers)
    with os.fdopen(commands, "wb") as to, os.fdopen(answers, "rb") as out:
        browser = Browser(to, out)
        target = browser.ask("Target.createTarget", url=url)["targetId"]
        attached = browser.ask("Target.attachToTarget", targetId=target, flatten=True)
        browser.session = attached["sessionId"]
        try:
            yield browser
        finally:
            browser.session = ""
            browser.ask("Browser.close")
            process.wait(60)
