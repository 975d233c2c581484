"""Rules about secrets: a site file is read by many and kept for ever, so none may stand in it."""

from collections.abc import Iterator

from generator import secrecy
from generator.diagnostics import KeyPath
from generator.forms import form_fault
from generator.rules.registry import Fault, rule
from generator.source import Document


@rule("SG710")
def text_like_a_secret(document: Document) -> Iterator[Fault]:
    """No text or key looks like a token, a private key or an address with a password.

    A site file lives in a repository and its bundle on every node. Values of secrets live in
    /etc/sparkgen/secrets.env on the nodes; the site file has their names alone.

    Bad:
        engine:
          env:
            HF_TOKEN: hf_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx

    Good:
        engine:
          secrets: [HF_TOKEN]
    """
    for secret in secrecy.secrets(document):
        if secret.looks:
            yield Fault(
                f"this looks like {secret.looks}",
                secret.path,
                _help(secret.path, secret.at_key),
                at_key=secret.at_key,
            )


@rule("SG711", not_beside="SG710")
def value_of_a_secret(document: Document) -> Iterator[Fault]:
    """No key that is named like a password, a token or an API key has a value.

    Values of secrets live in /etc/sparkgen/secrets.env on the nodes; the site file has their names.

    Bad:
        engine:
          env:
            WANDB_API_KEY: abc

    Good:
        engine:
          secrets: [WANDB_API_KEY]
    """
    paths = (secret.path for secret in secrecy.secrets(document) if not secret.looks)
    for path in dict.fromkeys(paths):
        yield Fault("the value of a secret stands here", path, _help(path))


def _help(path: KeyPath, at_key: bool = False) -> str:
    """What to write in its place: the name of the variable, where it is one."""
    name = _variable(path) if not at_key else ""
    instead = f"write 'secrets: [{name}]' under 'engine'" if name else "take it out"
    where = "values belong in /etc/sparkgen/secrets.env on the nodes"
    return f"{instead}: {where}; revoke this one if others have seen it"


_FLAGS = {"api-key": "VLLM_API_KEY", "hf-token": "HF_TOKEN"}


def _variable(path: KeyPath) -> str:
    """The environment variable that a secret of the engine is handed over in."""
    key = next((part for part in reversed(path) if isinstance(part, str)), "")
    if path[:2] == ("engine", "args"):
        return _FLAGS.get(key.replace("_", "-"), "")
    is_variable = path[:2] == ("engine", "env") and not form_fault("variable", key)
    return key if is_variable else ""
