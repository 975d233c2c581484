"""The command `sparkgen`, which is `python -m generator` too."""

import atexit
import gc

# Of which one command on a small site makes less, so that only large ones collect garbage.
_OBJECTS = 200_000


def main() -> None:
    """Run the command, and spare its process, which ends soon, the search for cycles.

    To look for them in all that is imported is of no use: what a command makes is free of them, and
    the end of the process frees all.
    """
    gc.set_threshold(_OBJECTS)
    atexit.register(gc.freeze)
    from generator.cli import main as command

    command(prog_name="sparkgen")


if __name__ == "__main__":
    main()
