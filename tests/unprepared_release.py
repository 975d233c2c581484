r"""Checks sites of a release of vLLM that sparkgen does not have, by the catalog of its wheel.

    python tests/make_flag_catalog.py vllm 0.33.0 ... --output own.json
    PYTHONPATH=.:tests python tests/unprepared_release.py own.json

The built-in catalog of that release is taken away. `sparkgen catalog add` keeps the description,
and all example sites, right sites, cases of rules about flags and rows of `startup/` must have the
same findings as before. Prints how many sites there are, how many findings they have, and which
sites differ. The exit status is 1 if any does, or if the catalog makes no difference.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import yaml
from startup.compare_vllm_classes import site
from test_added_catalogs import SITES, VERSION, found, read

from generator.catalogs import added, flag_files

ROOT = Path(__file__).parents[1]


def rows() -> Iterator[bytes]:
    """The sites of the rows of `startup/vllm.yaml`, all with that release."""
    empty = {"model": {}, "parallel": {}, "args": {}, "env": {}}
    for row in yaml.safe_load((ROOT / "tests/startup/vllm.yaml").read_text("utf-8")):
        for side in ("bad", "good"):
            settings = empty | row[side]
            settings["model"] = {"name": "gpt-oss-120b"} | settings["model"]
            yield yaml.safe_dump(site(settings, "vllm", VERSION), sort_keys=False).encode()


def main() -> int:
    """Compare both."""
    text = added.described(Path(sys.argv[1]).read_bytes()).text
    files = [*ROOT.glob("sites/**/*.yaml"), *ROOT.glob("tests/right/**/*.yaml")]
    texts = [*(file.read_bytes() for file in sorted(files)), *SITES]
    sites = [each for each in texts if f"version: {VERSION}\n".encode() in each]
    sites += rows()
    whole = flag_files._covered
    before = [found(read(each, {})) for each in sites]

    def covered(program: str) -> tuple[str, ...]:
        return tuple(each for each in whole(program) if each != VERSION)

    # These remember what the release had.
    flag_files.is_covered.cache_clear()
    flag_files.neighbours.cache_clear()
    with patch.object(flag_files, "_covered", covered):
        without = [found(read(each, {})) for each in sites]
        after = [found(read(each, {"own.tsv": text})) for each in sites]
    differing = [n for n in range(len(sites)) if before[n] != after[n]]
    for number in differing:
        print(sites[number].decode()[:200], before[number], after[number], sep="\n")
    changed = sum(one != other for one, other in zip(before, without, strict=True))
    print(
        f"{len(sites)} sites, {sum(map(len, before))} findings; {changed} sites differ without a "
        f"catalog, {len(differing)} with the one of the wheel"
    )
    return 1 if differing or not changed else 0


if __name__ == "__main__":
    sys.exit(main())
