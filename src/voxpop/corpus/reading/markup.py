"""HTML as the text that readers see, by Python's own parser.

Dropped: tags with their attributes, comments, declarations, and all within `script`, `style` and `template`. Entities
become what they stand for. Tags within a line (`<b>`, `<a>`, `<span>`, ...) part nothing; all others end the line, so
that neither words nor sentences run from one paragraph or cell into the next.
"""

import re
from html.parser import HTMLParser
from typing import Final, final

import pyarrow as pa
import pyarrow.compute as pc

WITHIN_LINES: Final = frozenset(
    re.findall(
        r"\w+",
        "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark nobr q s samp small span strike "
        "strong sub sup time tt u var wbr",
    )
)
UNSEEN: Final = frozenset(("script", "style", "template"))
MARKUP = "[<&]"
SOFT_HYPHEN = "\u00ad"
"""Where a long word may be broken: part of how a page is set, as `<wbr>` is."""


def without_markup(texts: pa.Array) -> pa.Array:
    """Return texts of HTML as plain ones; those without `<` and `&` are as they were.

    Args:
        texts: large_string.
    """
    marked = pc.match_substring_regex(texts, MARKUP).fill_null(False)
    if not pc.any(marked).as_py():
        return texts
    plain = [plain_text(text) for text in texts.filter(marked).to_pylist()]
    return pc.replace_with_mask(texts, marked, pa.array(plain, pa.large_string()))


def plain_text(text: str) -> str:
    r"""Return HTML as plain text.

    Example:
        >>> plain_text("<p>Tea &amp; <b>m</b>ilk<br>caf&eacute;<!-- secret --></p>")
        '\nTea & milk\ncafé\n'
    """
    parser = _Text()
    parser.feed(text)
    parser.close()
    return "".join(parser.parts).replace(SOFT_HYPHEN, "")


@final
class _Text(HTMLParser):
    """Text met so far."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._unseen += tag in UNSEEN
        self._end_line(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self._end_line(tag)

    def handle_endtag(self, tag: str) -> None:
        self._unseen -= tag in UNSEEN and self._unseen > 0
        self._end_line(tag)

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.parts.append(data)

    def parse_marked_section(self, i: int, report: bool = True) -> int:
        """Take `<![...` for a comment, as browsers do: the parser's own way stops at what it does not know."""
        return self.parse_bogus_comment(i)

    def _end_line(self, tag: str) -> None:
        if tag not in WITHIN_LINES:
            self.parts.append("\n")
