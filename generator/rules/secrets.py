"""Rules about secrets: a site file is read by many and kept forever, so it must not contain any."""

from collections.abc import Mapping, Sequence

from generator.catalogs.engines import ENGINE_TRAITS
from generator.diagnostics import KeyPath, Related, removal
from generator.fabric.addressing import Fabric
from generator.rules.environment import derived_variables
from generator.rules.nodes import Nodes, named_twice
from generator.rules.registry import Fault, Faults, rule, to_remove
from generator.sitefile.declaration import DeclaredEngine, Topology
from generator.sitefile.redaction import Secret
from generator.sitefile.sections import path_in_group
from generator.sitefile.source import Document, value_at
from generator.sitefile.text_types import text_fault


@rule("SG710")
def text_like_a_secret(secrets: Sequence[Secret], document: Document) -> Faults:
    """No text or key looks like a token, a private key or an address with a password."""
    for secret in secrets:
        if secret.looks:
            yield Fault(
                f"this looks like {secret.looks}",
                secret.path,
                _help(document, secret.path, secret.at_key),
                at_key=secret.at_key,
            )


@rule("SG711", suppressed_by="SG710")
def value_of_a_secret(secrets: Sequence[Secret], document: Document) -> Faults:
    """No key that is named like a password, a token or an API key has a value."""
    paths = (secret.path for secret in secrets if not secret.looks)
    # That a secret has a name alone is said where its value is a mapping.
    paths = (path for path in paths if path[-3:-2] != ("secrets",))
    for path in dict.fromkeys(paths):
        yield Fault("the value of a secret is written here", path, _help(document, path))


@rule("SG712", unless="SG307 SG602")
def secret_with_a_taken_name(
    engine: DeclaredEngine, nodes: Nodes, fabric: Fabric, topology: Topology
) -> Faults:
    """A secret's name is not used for anything else."""
    if not engine.secrets:
        return
    derived = derived_variables(engine, nodes, fabric, topology)
    for index, name in enumerate(engine.secrets):
        first = engine.secrets.index(name)
        path = ("engine", "secrets", index)
        if first < index:
            other = Related("first named", ("engine", "secrets", first))
            yield named_twice(f"the secret {name}", path, "remove it", other)
        elif engine.environment.of(name):
            other = Related("its value", ("engine", "env", name))
            yield Fault(
                f"{name} is in 'env' and in 'secrets', and the secret would replace the value",
                path,
                "remove it from 'env' if nobody may read its value, or else from 'secrets'",
                related=(other,),
                proposals=removal(path) + removal(("engine", "env", name)),
            )
        elif name in derived:
            yield to_remove(
                f"{name} is not a secret: sparkgen derives it, and a secret would replace it", path
            )


def _help(document: Document, path: KeyPath, at_key: bool = False) -> str:
    """What to write instead: the name of the variable, if there is one."""
    name = _variable(document, path) if not at_key else ""
    instead = f"write 'secrets: [{name}]' under 'engine'" if name else "remove it"
    where = "values belong in /etc/sparkgen/secrets.env on the nodes"
    return f"{instead}: {where}; revoke this one if others have seen it"


def _variable(document: Document, path: KeyPath) -> str:
    """The environment variable that passes a secret to the engine."""
    key = next((part for part in reversed(path) if isinstance(part, str)), "")
    own = path_in_group(path)
    if own[:2] == ("engine", "args"):
        flags = {"api-key": _api_key(document, path), "hf-token": "HF_TOKEN"}
        return flags.get(key.replace("_", "-"), "")
    is_variable = own[:2] == ("engine", "env") and not text_fault("variable", key)
    return key if is_variable else ""


def _api_key(document: Document, path: KeyPath) -> str:
    """The variable with the API's key; the engine section that contains a path may be invalid."""
    own = value_at(document.data, path[: path.index("engine") + 1])
    traits = ENGINE_TRAITS.get(str(own.get("name"))) if isinstance(own, Mapping) else None
    return (traits.api_key if traits else None) or ""
