"""Run the command line as `python -m voxpop.cli`."""

from voxpop.cli import console

if __name__ == "__main__":
    console()
