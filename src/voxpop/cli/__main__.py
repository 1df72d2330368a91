"""`python -m voxpop.cli` is the command line."""

from voxpop.cli import console

if __name__ == "__main__":
    console()
