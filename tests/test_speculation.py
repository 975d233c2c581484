"""Speculative decoding: how each engine's methods are passed on its command line.

`speculation/ENGINE.txt` has a line for each, with the engine's release and the site's settings,
followed by the flags that the engine gets. `pytest --update-golden` rewrites the latter; read the
diff before committing it.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from valid_sites import valid

from generator.catalogs.engines import ENGINE_TRAITS

FOLDER = Path(__file__).parent / "speculation"
TABLES = {file.stem: file for file in FOLDER.glob("*.txt")}
SITE = """\
version: 1
name: lab
nodes: [{{name: spark1}}]
topology: {{kind: single}}
model:
  name: {model}
  context_length: 8192
  max_sequences: 2
  speculative: {speculative}
{file}engine:
  name: {engine}
  version: {version}
  image: example.org/engine:1
"""


@pytest.mark.golden
@pytest.mark.parametrize("engine", TABLES)
def test_engine_gets_the_method(engine: str, pytestconfig: pytest.Config) -> None:
    rows = [line for line in TABLES[engine].read_text().splitlines() if line[:1] not in (" ", "")]
    text = "".join(
        f"{line}\n{''.join(arguments_for(engine, *line.split(' ', 1)))}" for line in rows
    )
    if pytestconfig.getoption("update_golden"):
        TABLES[engine].write_text(text)
    assert TABLES[engine].read_text() == text


def test_every_method_is_covered() -> None:
    drafting = {name: e.draft_methods for name, e in ENGINE_TRAITS.items() if e.draft_methods}
    assert set(TABLES) == set(drafting)
    for engine, methods in drafting.items():
        shown = TABLES[engine].read_text().lower()
        assert [name for name in methods if methods[name].spelled.lower() not in shown] == []


def arguments_for(engine: str, version: str, method: str) -> Iterator[str]:
    """The engine's flags or settings for speculation, one per line."""
    predicts = "mtp" in method.lower() or "nextn" in method.lower()
    text = SITE.format(
        model="qwen3.6-27b" if predicts else "llama-3.1-8b-instruct",
        speculative=method,
        file="  file: /srv/models/m.gguf\n" if engine == "llama.cpp" else "",
        engine=engine,
        version=version,
    )
    container = valid(text).site.head.container
    if settings := container.options.get("speculative_config"):
        yield from (f"    {line}\n" for line in yaml.dump(dict(settings)).splitlines())
    yield from (
        f"    {' '.join(words)}\n" for words in container.command if "--spec" in "".join(words)
    )
