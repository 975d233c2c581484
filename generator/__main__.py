"""`python -m generator` is the command `sparkgen`."""

from generator.cli import main

if __name__ == "__main__":
    main(prog_name="sparkgen")
