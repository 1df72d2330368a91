"""How objects show themselves in notebooks and on terminals: escaped text and small tables."""

from collections.abc import Iterable, Sequence
from html import escape

BOX = "border:1px solid rgba(128,128,128,.4);border-radius:8px;padding:.7em 1em;max-width:100%;overflow-x:auto"
SOFT = "opacity:.75;margin-top:.35em"
SHOWN = 12
"""Rows or words of the released results that a box shows."""
CAREFUL = "border-left:4px solid #d9822b;padding-left:.7em;margin-top:.5em"


class Printed:
    """A text that every display shows as `print` shows it."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Return what `print` shows."""
        return str(self)

    def _repr_html_(self) -> str:
        """Return the same for a notebook; wide tables scroll."""
        return f'<pre style="overflow-x:auto">{escape(str(self))}</pre>'


def card(
    title: str,
    lines: Sequence[str] = (),
    head: Sequence[str] = (),
    rows: Iterable[Sequence[str]] = (),
    warned: Sequence[str] = (),
) -> str:
    """Return a box for a notebook, with every text escaped.

    Args:
        title: in bold.
        lines: below it.
        head: of the columns of a table, if there is one.
        rows: of it.
        warned: sentences that must not be overlooked.
    """
    parts = [f"<b>{escape(title)}</b>"]
    parts += [f'<div style="{SOFT}">{escape(line)}</div>' for line in lines]
    parts += [f'<div style="{CAREFUL}">{escape(line)}</div>' for line in warned]
    if head:
        cells = "".join(f"<th>{escape(each)}</th>" for each in head)
        body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
        parts.append(f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>")
    return f'<div style="{BOX}">{"".join(parts)}</div>'


def printable(gram: Iterable[str]) -> str:
    """Return a gram with everything a terminal might obey written as an escape, and blank tokens in quotes."""
    return " ".join("".join(map(_visible, token)) if token.strip() else repr(token) for token in gram)


def words_first(grams: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return grams in their order: those that begin with a letter, then numbers, then punctuation."""
    return sorted(grams, key=lambda gram: 0 if gram[0][:1].isalpha() else 1 if gram[0][:1].isalnum() else 2)


def _visible(letter: str) -> str:
    return letter if letter.isprintable() else letter.encode("unicode_escape").decode()


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of cells as lines, columns aligned to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
