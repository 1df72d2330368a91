"""The colours of the report, for the documentation site and its pictures."""

import re
from functools import cache
from importlib.resources import files


@cache
def palette(theme: str = "light") -> dict[str, str]:
    """Return colours by their names in the style of the report, such as accent, second, third and ink.

    Args:
        theme: The theme, "light" or "dark".
    """
    style = files("voxpop.release.report").joinpath("template/style.css").read_text(encoding="utf-8")
    start = ":root {" if theme == "light" else ':root[data-theme="dark"] {'
    block = style.split(start, 1)[1].split("}", 1)[0]
    return dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", block))
