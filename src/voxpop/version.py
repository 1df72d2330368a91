"""The version of this package."""


def installed_version() -> str:
    """Return the version that is installed."""
    from importlib.metadata import version

    return version("voxpop")
