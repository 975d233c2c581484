"""Docker's own client, run on a node whose engine is a stand-in for the API."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from typing import Any

from captured_nodes import Container


def inspected(container: Container) -> dict[str, Any]:
    """A container as the API returns it."""
    return {
        "Name": f"/{container.name}",
        "Image": container.image_id,
        "Id": container.id,
        "State": {"Status": "running", "StartedAt": container.started},
        "Config": {
            "Image": container.image,
            "User": "",
            "Env": list(container.env),
            "Cmd": list(container.command),
            "Entrypoint": list(container.entrypoint) or None,
        },
        "HostConfig": {
            "RestartPolicy": {"Name": container.restart, "MaximumRetryCount": 0},
            "Privileged": container.privileged,
            "NetworkMode": container.network,
            "IpcMode": container.ipc,
            "PidMode": "",
            "ShmSize": container.shm,
            "Memory": 0,
            "CpusetCpus": "",
            "CapDrop": None,
            "Init": None,
            "CapAdd": ["IPC_LOCK"],
            "Devices": [{"PathOnHost": "/dev/infiniband", "PathInContainer": "/dev/infiniband"}],
            "Ulimits": [{"Name": "memlock", "Hard": -1, "Soft": -1}],
        },
        "Mounts": [
            {"Type": "bind", "Source": source, "Destination": target, "RW": True}
            for source, target in container.mounts
        ],
    }


def image(container: Container) -> dict[str, Any]:
    """Its image as the API returns it."""
    return {
        "Id": container.image_id,
        "RepoTags": [container.image],
        "RepoDigests": list(container.digests),
        "RootFS": {"Type": "layers", "Layers": list(container.layers)},
        "Architecture": "arm64",
        "Config": {
            "Env": list(container.image_env),
            "Entrypoint": None,
            "Labels": {"sparkgen.build": container.build} if container.build else None,
        },
    }


@contextmanager
def engine(container: Container, socket: Path) -> Iterator[None]:
    """A Docker engine with one container, listening on a socket."""
    answers: Mapping[str, Any] = {
        "containers/json": [{"Id": "ab" * 32, "Image": "", "Names": [], "Created": 1, "Ports": []}],
        "containers/": inspected(container),
        "images/": image(container),
        "info": {"ServerVersion": "29.2.1", "Driver": "overlay2"},
        "_ping": "OK",
    }

    class Handler(BaseHTTPRequestHandler):
        def address_string(self) -> str:
            return ""

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            pass

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            answer = next(content for path, content in answers.items() if path in self.path)
            raw = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Api-Version", "1.47")
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(raw)

    with ThreadingUnixStreamServer(str(socket), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
