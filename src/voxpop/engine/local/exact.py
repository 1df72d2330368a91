"""The exact figures of a corpus, for its owner.

The figures have no noise, so they are private and never part of a release.

No mechanism imports this module. The callers of this module mark the figures as PRIVATE. The argument `held` is a
`LocalCorpus`. This module cannot import that class, because `engine/data.py` imports this module.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.errors import on_one_line
from voxpop.files.progress import rounded
from voxpop.kernels.arrays import Int64s
from voxpop.privacy.budget import Printed
from voxpop.reading.arrow import int64_array, numbers_of, string_array

PRIVATE = "PRIVATE: computed from the data without noise. Do not publish it."


@final
@dataclass(frozen=True, repr=False)
class Summary(Printed):
    """The figures of a corpus, for its owner. They are PRIVATE.

    Attributes:
        kind: "text", "tokens", "items" or "sequence".
        token_source: The method that produced the tokens.
        columns: The columns of items and their types; empty for words.
        figures: The private numbers by name, rounded to two digits unless they are exact.
        frequent: The most frequent tokens and their numbers of users; empty unless they were requested.
    """

    kind: str
    token_source: str
    columns: tuple[str, ...]
    figures: dict[str, str]
    frequent: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, ready for JSON, with the mark PRIVATE."""
        return {
            "private": PRIVATE,
            "kind": self.kind,
            "token_source": self.token_source,
            "columns": list(self.columns),
            "figures": dict(self.figures),
            "frequent": [list(each) for each in self.frequent],
        }

    def __str__(self) -> str:
        rows = [("kind", self.kind), ("tokens made by", self.token_source or "a function without a name")]
        rows += [("columns of items", ", ".join(self.columns))] if self.columns else []
        rows += [*self.figures.items(), *self.frequent]  # a list, because a token may have the name of a figure
        width = max(len(name) for name, _ in rows)
        return "\n".join([PRIVATE, *(f"  {name.ljust(width)}  {value}" for name, value in rows)])


def summary_of(held: Any, *, exact: bool = False, frequent: int = 0) -> Summary:
    """Return the figures of a corpus; see `Corpus.summary`."""
    held.require("the figures of all users", per_token=9, per_user=24, per_word=16)
    present = np.asarray(held.tokens) >= 0
    before = np.concatenate([[0], np.cumsum(present)])
    sizes = np.diff(before[np.asarray(held.user_start)])
    documents = int(present.size - present.sum())
    figures = {
        "users": rounded(sizes.size, exact=exact),
        **({"texts or sequences": rounded(documents, exact=exact)} if held.kind != "items" else {}),
        "tokens" if held.kind != "items" else "items of all users": rounded(int(present.sum()), exact=exact),
        "different ones": rounded(len(held.vocabulary), exact=exact),
        "users without any": rounded(int((sizes == 0).sum()), exact=exact),
    }
    if sizes.size:
        middle, high, most = (int(each) for each in np.quantile(sizes, (0.5, 0.95, 1.0), method="higher"))
        figures |= {
            "median per user": rounded(middle, exact=exact),
            "95 % of users have at most": rounded(high, exact=exact),
            "maximum per user": rounded(most, exact=exact),
        }
    figures |= (
        {"ids of users": ", ".join(each or "undeclared type" for each in held.families.values())}
        if held.families
        else {}
    )
    if held.alike is not None:
        figures["ids that differ in case or spaces only"] = rounded(held.alike, exact=exact)
    columns = tuple(f"{each.name} ({each.kind})" for each in held.keys.columns)
    return Summary(held.kind, held.token_source, columns, figures, _frequent(held, frequent, exact=exact))


def _frequent(held: Any, number: int, *, exact: bool) -> tuple[tuple[str, str], ...]:
    if not number:
        return ()
    users = next(counted(held, {})).users
    order = np.argsort(-users, kind="stable")[:number]
    texts = held.vocabulary.take(int64_array(order)).to_pylist()
    shown = [f"{rounded(int(users[place]), exact=exact)} users" for place in order]
    return tuple(zip(map(on_one_line, texts), shown, strict=True))


def users_of(held: Any, gram: Sequence[str]) -> int:
    """Return the exact number of users of a gram. The number is private.

    Args:
        held: The corpus.
        gram: The tokens of the gram, or one item.
    """
    wanted = numbers_in(held, string_array(gram))
    if (wanted < 0).any() or not wanted.size:
        return 0
    tokens, starts = np.asarray(held.tokens), np.asarray(held.user_start)
    places = np.flatnonzero(tokens == wanted[0])
    for step, token in enumerate(wanted[1:].tolist(), start=1):
        places = places[places + step < tokens.size]
        places = places[tokens[places + step] == token]
    # A document ends with -1, so no match extends into the next document or into the next user's documents.
    return int(np.unique(np.searchsorted(starts, places, side="right")).size)


def numbers_in(held: Any, tokens: pa.Array) -> Int64s:
    """Return the id of each token in the corpus, or -1 if no user has the token."""
    return numbers_of(pc.index_in(tokens, value_set=held.vocabulary), missing=-1).astype(np.int64)


@final
@dataclass(frozen=True, repr=False)
class ExactCount:
    """The exact counts of the grams of one length. The counts are private.

    Attributes:
        length: The number of tokens of each gram.
        users: int64, the number of users of each counted gram; see `counted`.
        listed: int64, the number of users of each listed gram.
        occurrences: The number of occurrences of all grams of this length. For items, it is the number of (user, item)
            pairs.
        covered: The number of occurrences of listed grams.
    """

    length: int
    users: Int64s
    listed: Int64s
    occurrences: int
    covered: int


def counted(held: Any, listed: Mapping[int, Int64s]) -> Iterator[ExactCount]:
    """Count the users of all grams, length by length.

    From length 2 on, a gram is counted only if at least two users have the gram without its last token, or if this
    shorter gram begins a listed gram. Any other gram can have only one user.

    Args:
        held: The corpus.
        listed: int64 (grams, length) for each length, the ids of the grams' tokens in the corpus.

    Yields:
        The counts of each length from 1 to the largest length of `listed`.
    """
    held.require("the grams of all users", per_token=56, per_user=0, per_word=16)
    tokens, users = np.asarray(held.tokens), np.asarray(held.user_start).size - 1
    owner = np.repeat(np.arange(users), np.diff(held.user_start))
    places = np.flatnonzero(tokens >= 0)
    if held.kind == "items":  # a user's repeated items count once
        pairs = owner[places] * max(1, len(held.vocabulary)) + tokens[places]
        places = places[np.unique(pairs, return_index=True)[1]]
    names, number = tokens[places].astype(np.int64), len(held.vocabulary)
    beginnings = {length: rows[:, 0] for length, rows in listed.items()}
    longest = max(listed, default=1)
    for length in range(1, longest + 1):
        pairs = np.unique(names * max(1, users) + owner[places])
        have = np.bincount(pairs // max(1, users), minlength=number)
        mine = beginnings.pop(length, np.empty(0, np.int64))
        known = np.append(have, 0)[mine]  # an unknown token (-1) selects the appended 0
        is_listed = np.zeros(number + 1, np.bool_)
        is_listed[mine] = True
        yield ExactCount(length, have, known, names.size, int(is_listed[names].sum()))
        if length == longest:
            return
        kept = np.append(have >= 2, False)
        for rows in beginnings.values():
            kept[rows] = True
        going = np.flatnonzero(kept[names] & (places + length < tokens.size))
        going = going[tokens[places[going] + length] >= 0]
        names, places = names[going], places[going]
        width = len(held.vocabulary)
        distinct, names = np.unique(names * width + tokens[places + length], return_inverse=True)
        number = distinct.size
        for each, rows in beginnings.items():
            longer = listed[each][:, length]
            beginnings[each] = _positions_found(
                distinct, np.where((rows < 0) | (longer < 0), -1, rows * width + longer)
            )


def _positions_found(distinct: Int64s, wanted: Int64s) -> Int64s:
    """Return the position of each requested number among increasing distinct numbers, or -1 if it is missing."""
    if not distinct.size:
        return np.full(wanted.size, -1, np.int64)
    places = np.minimum(np.searchsorted(distinct, wanted), distinct.size - 1)
    return np.where(distinct[places] == wanted, places, -1).astype(np.int64)
