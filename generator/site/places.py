"""Where the files, the unit and the container of an engine are called and lie on a node.

A site with one engine has them under names of their own; those of a group carry its name.
"""

_ENGINE = "sparkgen-engine"


def unit(group: str) -> str:
    """The unit of a group's engine, which is the name of its container too."""
    return f"{_ENGINE}-{group}" if group else _ENGINE


def project(group: str) -> str:
    """The project of Compose that the container is in."""
    return f"sparkgen-{group}" if group else "sparkgen"


def place(path: str, group: str) -> str:
    """The path of a group's own file that is at `path` where there are no groups."""
    if not group:
        return path
    folder, _, name = path.rpartition("/")
    if name.startswith(f"{_ENGINE}."):
        return f"{folder}/{unit(group)}{name.removeprefix(_ENGINE)}"
    if folder.endswith("etc/sparkgen"):
        return f"{folder}/groups/{group}.{name.removeprefix('engine.')}"
    return f"{folder}/groups/{group}/{name}"


def image_folder(group: str) -> str:
    """What the image of an engine is built with, for the operator's machine."""
    return f"operator/groups/{group}/image" if group else "operator/image"


def is_context(path: str) -> bool:
    """Whether it is a file of people that an image is built from."""
    return path.startswith("operator/") and "/image/context/" in path


def given_secrets(group: str) -> str:
    """Where an engine's own secrets are prepared for its container, by its unit."""
    return f"/run/{unit(group)}/secrets"


# Of the files in a container those that differ from engine to engine; scripts are alike.
_OWN = ("hostfile", "options.yaml", "ssh_config", "sshd_config")


def mounted(path: str, group: str) -> str:
    """Where a node has what a container sees as this generated file."""
    return place(path, group if path.rpartition("/")[2] in _OWN else "")
