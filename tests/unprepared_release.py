r"""Checks sites of a release of vLLM that sparkgen does not have, by the catalog of its wheel.

    python tests/make_flag_catalog.py vllm 0.33.0 ... --output own.json
    PYTHONPATH=.:tests python tests/unprepared_release.py own.json

The built-in catalog of that release is taken away. `sparkgen catalog add` keeps the description,
and all example sites, right sites and cases of rules about flags must have the same findings as
before. Prints how many sites there are, how many findings they have, and which sites differ.
"""

import sys
from pathlib import Path
from unittest.mock import patch

from test_added_catalogs import SITES, VERSION, found, read

from generator.catalogs import added, flag_files

ROOT = Path(__file__).parents[1]


def main() -> int:
    """Compare; the exit status is 1 if any site differs."""
    text = added.described(Path(sys.argv[1]).read_bytes()).text
    files = [*ROOT.glob("sites/**/*.yaml"), *ROOT.glob("tests/right/**/*.yaml")]
    texts = [*(file.read_bytes() for file in sorted(files)), *SITES]
    sites = [site for site in texts if f"version: {VERSION}\n".encode() in site]
    whole = flag_files._covered
    before = [found(read(site, {})) for site in sites]

    def covered(program: str) -> tuple[str, ...]:
        return tuple(each for each in whole(program) if each != VERSION)

    with patch.object(flag_files, "_covered", covered):
        without = [found(read(site, {})) for site in sites]
        after = [found(read(site, {"own.tsv": text})) for site in sites]
    differing = [n for n, site in enumerate(sites) if before[n] != after[n]]
    for number in differing:
        print(sites[number].decode()[:200], before[number], after[number], sep="\n")
    changed = sum(one != other for one, other in zip(before, without, strict=True))
    print(
        f"{len(sites)} sites, {sum(map(len, before))} findings; {changed} sites differ without a "
        f"catalog, {len(differing)} with the one of the wheel"
    )
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
