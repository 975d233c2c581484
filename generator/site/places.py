"""The names and paths of an engine's files, unit and container on a node.

On a site with one engine they are fixed; those of a group contain its name.
"""

_ENGINE = "sparkgen-engine"


def unit(group: str) -> str:
    """The unit of a group's engine, whose name is also that of its container."""
    return f"{_ENGINE}-{group}" if group else _ENGINE


def project(group: str) -> str:
    """The Compose project of the container."""
    return f"sparkgen-{group}" if group else "sparkgen"


def place(path: str, group: str) -> str:
    """The path of a group's own file, given the `path` on a site without groups."""
    if not group:
        return path
    folder, _, name = path.rpartition("/")
    if name.startswith(f"{_ENGINE}."):
        return f"{folder}/{unit(group)}{name.removeprefix(_ENGINE)}"
    if folder.endswith("etc/sparkgen"):
        return f"{folder}/groups/{group}.{name.removeprefix('engine.')}"
    return f"{folder}/groups/{group}/{name}"


def image_folder(group: str) -> str:
    """The folder of an image's build files, on the operator's machine."""
    return f"operator/groups/{group}/image" if group else "operator/image"


def is_context(path: str) -> bool:
    """Whether a path is a user's own file that an image is built from."""
    return path.startswith("operator/") and "/image/context/" in path


def given_secrets(group: str) -> str:
    """The path at which an engine's unit prepares its secrets for the container."""
    return f"/run/{unit(group)}/secrets"


# Files in a container that differ from engine to engine; scripts are all the same.
_OWN = ("hostfile", "options.yaml", "ssh_config", "sshd_config")


def mounted(path: str, group: str) -> str:
    """The path on a node of a generated file that a container sees at `path`."""
    return place(path, group if path.rpartition("/")[2] in _OWN else "")


# In a node's folder, the texts that the site was read from: nothing depends on them.
SITE_TEXT, BASE_TEXT, LOCK_TEXT = "site.yaml", "base.yaml", "lock.yaml"


def is_recorded(path: str) -> bool:
    """Whether a file of a bundle only records a text that the site was read from."""
    return path.partition("/")[2] in (SITE_TEXT, BASE_TEXT, LOCK_TEXT)
