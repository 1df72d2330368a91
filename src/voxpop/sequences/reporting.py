"""The report of a model: the page of a release, with noisy counts beside the grams."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from voxpop.release.grams import table_of_lists
from voxpop.sequences.context_tree import OTHERS
from voxpop.sequences.picturing import pictures_of

if TYPE_CHECKING:
    from voxpop.sequences.context_tree import ContextTree
    from voxpop.sequences.model import SequenceModel

END = "⟨end⟩"


def report_of_model(model: "SequenceModel", checksums: Mapping[str, str]) -> bytes:
    """Return the page of a model; equal models give equal bytes.

    Args:
        model: to be signed off.
        checksums: of the files beside the page.
    """
    from voxpop.release.report.about_sequences import about_sequences
    from voxpop.release.report.page import MOST_SHOWN, page_of
    from voxpop.release.report.payload import payload_of
    from voxpop.release.trie import GramTrie

    end = _end_mark(set(model.alphabet))
    rows = _rows(model, end)
    sizes: dict[int, int] = {}
    scales: dict[int, tuple[float, float]] = {}
    for gram, _, scale in rows:
        sizes[len(gram)] = sizes.get(len(gram), 0) + 1
        low, high = scales.get(len(gram), (scale, scale))
        scales[len(gram)] = (min(low, scale), max(high, scale))
    shown = rows[:MOST_SHOWN]
    trie = GramTrie.of(table_of_lists([gram for gram, *_ in shown]))
    counts = np.minimum(np.array([count for _, count, _ in shown], np.int64), 2**32 - 1)
    shape, packed = payload_of(trie, counts)
    shape |= {"reading": "sequence", "shown": len(shown)}
    plan = model.plan.to_dict()
    story = about_sequences(plan, sizes, scales, end, pictures_of(model, end))
    return page_of(story, model.guarantee, plan, sizes, (shape, packed), checksums, model.about)


def _rows(model: "SequenceModel", end: str) -> list[tuple[list[str], int, float]]:
    """Return gram, noisy count and scale of each entry in canonical order: every beginning is an entry itself."""
    from voxpop.sequences.tree import Tree

    if not isinstance(model.tree, Tree):
        return _rows_of_contexts(model, model.tree, end)
    table = model.to_polars()
    ends = table["ends"].to_list()
    grams = [[*gram, end] if closed else gram for gram, closed in zip(table["gram"].to_list(), ends, strict=True)]
    rows: list[tuple[list[str], int, float]] = list(
        zip(grams, table["count"].to_list(), table["scale"].to_list(), strict=True)
    )
    return sorted(rows, key=_canonical)


def _rows_of_contexts(model: "SequenceModel", tree: "ContextTree", end: str) -> list[tuple[list[str], int, float]]:
    """Return the grams that the tree's own contexts and what follows them make, where all their beginnings occur too.

    The count is what is believed of it (post-processing), the scale that of the noise on what was released.
    """
    settled = model._sampler.settled  # type: ignore[union-attr]
    names = [*model.alphabet, end]
    rows: dict[tuple[str, ...], tuple[int, float]] = {}
    for node in np.flatnonzero((tree.before != OTHERS) & ~tree.begun).tolist():
        context = tuple(names[symbol] for symbol in tree.contexts[node] if symbol >= 0)
        if context and context not in rows:
            continue
        for symbol in range(tree.width):
            count = round(settled.totals[node] * settled.chances[node, symbol])
            if count > 0 and (context or symbol < tree.width - 1):
                rows[(*context, names[symbol])] = (count, float(tree.scales[node]))
    return sorted([([*gram], count, scale) for gram, (count, scale) in rows.items()], key=_canonical)


def _canonical(row: tuple[list[str], Any, Any]) -> tuple[int, list[bytes]]:
    return len(row[0]), [token.encode() for token in row[0]]


def _end_mark(symbols: set[str]) -> str:
    """Return how the end is written: like no symbol."""
    mark = END
    while mark in symbols:
        mark = f"⟨{mark}⟩"
    return mark
