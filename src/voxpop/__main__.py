"""`python -m voxpop` is the command line."""

from voxpop.cli import main

if __name__ == "__main__":
    main()
