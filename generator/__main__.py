"""The `sparkgen` command, which `python -m generator` runs too."""

import atexit
import gc

# One command on a small site creates fewer objects than this, so only large ones collect garbage.
_OBJECTS = 200_000


def main() -> None:
    """Run the command without searching for reference cycles in a process that soon ends.

    Scanning everything that was imported would be of no use: commands create no cycles, and the end
    of the process frees all memory.
    """
    gc.set_threshold(_OBJECTS)
    atexit.register(gc.freeze)
    try:
        from generator.cli import main as command
    except Exception as error:
        # What the commands are called is read from a file, too.
        from generator.installation import fail

        fail(error)
    command(prog_name="sparkgen")


if __name__ == "__main__":
    main()
