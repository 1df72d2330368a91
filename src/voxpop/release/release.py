"""`Release`, a released set of grams with its plan and its guarantee."""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from os import PathLike
from typing import TYPE_CHECKING, Any, final
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.errors import InternalError
from voxpop.kernels.arrays import Bools, Int64s
from voxpop.privacy.budget import SAMPLE_SIZE, Budget, all_printable, card, words_first
from voxpop.privacy.guarantee import Guarantee, cautions
from voxpop.reading.arrow import numbers_of
from voxpop.reading.keys import Keys
from voxpop.release.registry import configuration, load_object
from voxpop.release.report.page import Grid, page_of, story_of
from voxpop.release.result import NO_METADATA, Metadata, Plan, Result, restored
from voxpop.release.saving import RELEASE, TABLE_FILE, record_of
from voxpop.release.table import (
    Completer,
    check_canonical,
    from_parquet,
    names_of_persons,
    plain_table,
    public_words,
    single_items,
    table_of_items,
    to_parquet,
    without_words,
)

if TYPE_CHECKING:
    from voxpop.engine.data import Corpus
    from voxpop.privacy.composition import Total
    from voxpop.privacy.planned import Account
    from voxpop.release.counts import Counts, Top
    from voxpop.release.explaining import Explanation
    from voxpop.release.table import Completion

_GRAMS_AT_ONCE = 65_536
KNOWN_KEY = "known"
"""The key in the record of a saved release for the bits of `Release.known` in base64."""


@final
@dataclass(frozen=True, repr=False, eq=False)
class Release(Result):
    """A released set of items or grams. A release contains neither counts nor an order by frequency.

    A gram is a tuple of tokens, and an item is a gram of length 1. Rows are in canonical order, which is by length and
    then by bytes, so the order depends only on the set.

    Iteration over a release of items yields strings for words, values of the column for keys of a table (7, a date),
    and tuples of values for several columns. Iteration over a release of grams yields tuples of tokens.

    Attributes:
        grams: pyarrow table with the columns `gram` (list of string) and `length` (int32).
        plan: the plan of the release, which contains its public numbers.
        guarantee: the privacy guarantee, or the statement that the release is not private.
        token_source: the source of the tokens, which is the tokenizer for texts, "items", "tokens" or "sequence", or ""
            if unknown.
        keys: the columns of the items, which are empty for words, or None for a release of grams. Columns have the
            types of the table, or are strings if nothing was released.
        metadata: the operator's statements about the release, for the report. Comparisons ignore it.
        id: 128 random bits that identify the release, so that counts and rankings are saved only with their release.
            The id is empty for a release with a seed and for a release that an earlier version saved. Comparisons
            ignore it.
        known: bool array, whether each item was on the public list of the release. An item on the list may have only
            one user or no user. The array is missing if there was no list or an earlier version saved the release.
            Comparisons ignore it.

    Example:
        >>> import pyarrow as pa
        >>> import voxpop as vp
        >>> from voxpop.release.result import StoredPlan
        >>> plan = StoredPlan({"mechanism": "items", "sigma": 1.2})
        >>> words = vp.Release.from_items(pa.array(["milk", "tea"]), plan, vp.Guarantee(4, 1e-7))
        >>> words
        Release(2 items, (4, 1e-07)-DP, one user added or removed)
        >>> "tea" in words, ("oat", "milk") in words
        (True, False)
        >>> list(words)
        ['milk', 'tea']
    """

    grams: pa.Table
    plan: Plan
    guarantee: Guarantee
    token_source: str = ""
    keys: Keys | None = None
    metadata: Metadata = NO_METADATA
    id: str | None = None
    known: Bools | None = None

    def __post_init__(self) -> None:
        """Raise an error if the table is not in canonical form, and assign an id to a new release."""
        check_canonical(self.grams)
        if self.known is not None and len(self.known) != len(self):
            raise InternalError("the marks of known items do not fit the released items")
        if self.id is None:
            # A release with a seed has no id, because repeating it makes the same release.
            object.__setattr__(self, "id", uuid4().hex if self.guarantee.private else "")
        if self.keys is not None and not len(self):
            # Types are published only with items, because a type that follows from values may depend on a single row.
            object.__setattr__(self, "keys", self.keys.without_types())

    @staticmethod
    def from_items(
        items: Any,
        plan: Plan,
        guarantee: Guarantee,
        token_source: str = "",
        keys: Keys | None = None,
        known: Bools | None = None,
    ) -> "Release":
        """Make the release of single items.

        Args:
            items: Pyarrow array of strings, distinct and sorted by their UTF-8 bytes.
            plan: The plan of the release.
            guarantee: The privacy guarantee of the release.
            token_source: The source of the tokens, if known.
            keys: The columns of the items, which are empty for words.
            known: bool array, whether each item was on a public list, if there is a list.

        Returns:
            The release.

        Raises:
            InternalError: If the items are not distinct and sorted.
        """
        keys = Keys() if keys is None else keys
        return Release(table_of_items(items), plan, guarantee, token_source, keys, known=known)

    def to_arrow(self) -> pa.Table:
        """Return a pyarrow table with the released items, in canonical order.

        Returns:
            For keys of a table, the key columns with their original names and types. For words and other items without
            columns, the column `word` (string). For grams, the columns `gram` (list of string) and `length` (int32).
        """
        return plain_table(self.grams, self.keys)

    def each_gram(self) -> Iterator[tuple[str, ...]]:
        """Yield each gram as a tuple of tokens in canonical order. An item is a tuple of one token."""
        for batch in self.grams.to_batches(max_chunksize=_GRAMS_AT_ONCE):
            # Use one list of all tokens, because a list for each gram takes eight times as long.
            tokens, first = batch.column("gram").flatten().to_pylist(), 0
            for end in np.cumsum(numbers_of(batch.column("length"))).tolist():
                yield tuple(tokens[first:end])
                first = end

    def complete(self, prompt: str | Sequence[str], first: int = 10) -> list["Completion"]:
        """Return the tokens that follow the longest released context of a prompt, then those of shorter contexts.

        The context is the longest suffix of the prompt that a released gram extends. The context contains at least the
        last token. Within a context, tokens are in descending order of the number of released grams that begin with the
        context and the token. Ties are in the order of the shorter context, then in the order of their bytes.
        Completions depend only on the set, not on frequencies.

        Args:
            prompt: A text, which is tokenized like the texts of the release if their tokenizer is known, or a list of
                tokens. The last word of a text may be unfinished. An unfinished word is completed if it was not
                released, if no released gram contains it after the preceding word, or if no token follows it. For an
                empty prompt, the continuations are the first tokens of grams.
            first: The maximum number of continuations.

        Returns:
            At most `first` continuations with distinct tokens, in descending order of rank. The list is empty if no
            continuation exists.

        Raises:
            InputError: If the prompt is neither a text nor a list of strings, or `first` is below 1.

        Example:
            >>> import polars as pl
            >>> import voxpop as vp
            >>> said = {"who": range(3000), "what": ["Thank you very much", "thank you for it"] * 1500}
            >>> corpus = vp.read(pl.DataFrame(said), user="who", text="what")
            >>> ngrams = vp.NGrams(max_length=3, max_phrases_per_user=10)
            >>> phrases = ngrams.release(corpus, vp.Budget(epsilon=4, delta=1e-8))
            >>> [(each.token, each.context) for each in phrases.complete("I thank you")]
            [('for', ('thank', 'you')), ('very', ('thank', 'you'))]
            >>> [each.token for each in phrases.complete("Thank you v")]
            ['very']
        """
        return self._completer.complete(prompt, first)

    def explain(self, item: Any, corpus: "Corpus | None" = None, *, exact: bool = False) -> "Explanation":
        """Explain why an item was released or may be missing.

        The answer depends only on the release and its plan, so it is public. With a corpus, `private` also contains the
        number of users who have the item. This number is PRIVATE, and `print` marks it.

        Args:
            item: A text, which is tokenized like the texts of the release; a list of tokens; or a value of the key
                columns.
            corpus: The data of the release, for the owner of the data.
            exact: Whether the private number is exact. By default the number is rounded, and numbers below 100 are
                hidden.

        Returns:
            The tokens of the item, whether it was released, the reasons that follow from the settings, the number of
            users that it needs, and similar released items.

        Raises:
            InputError: If the item has the wrong type, or the corpus was not read like the corpus of the release.

        Example:
            >>> import polars as pl
            >>> import voxpop as vp
            >>> said = pl.DataFrame({"who": range(3000), "what": ["get it", "apt"] * 1500})
            >>> corpus = vp.read(said, user="who", text="what")
            >>> words = vp.Items(max_items_per_user=100).release(corpus, vp.Budget(epsilon=4, delta=1e-8))
            >>> found = words.explain("Apt-Get")
            >>> found.tokens, found.released, found.reasons[0]
            (('apt', 'get'), False, "Read as apt | get by the tokenizer 'words'.")
        """
        explanation: Explanation = load_object("voxpop.release.questions:explain")(self, item, corpus, exact=exact)
        return explanation

    def without(
        self,
        words: "Iterable[str] | str | PathLike[str]" = (),
        *,
        names: str | Iterable[str] = (),
        keep: "Iterable[str] | str | PathLike[str]" = (),
        mentions: bool = False,
    ) -> "Release":
        """Return a release without the grams that contain certain public words, such as personal names.

        This is post-processing, so the guarantee is unchanged and no budget is spent. The words must be public, for
        example a public list of names. A list that depends on the data, such as the users of the table, would reveal
        which words of the list were released.

        Args:
            words: The words, or the path of a UTF-8 file with one word per line. Case does not matter.
            names: Locales, such as "en_US" or ["nl_NL", "fr_FR"]. The given names and family names that Faker lists for
                these locales are removed too (`pip install faker`). Many of these names are also ordinary words, such
                as "may" and "long".
            keep: Words that remain even if a list contains them, in the same form as `words`.
            mentions: Whether grams with a token that contains "@", such as account names and addresses, are removed
                too.

        Returns:
            A new release with the same plan and metadata. Counts and rankings of the original release do not belong to
            the new release.

        Raises:
            InputError: If the words are not strings, a locale has no names, or `mentions` is given although the
                tokenizer "words" has removed every "@".
            SourceError: If the file cannot be read.

        Example:
            >>> import pyarrow as pa
            >>> import voxpop as vp
            >>> from voxpop.release.result import StoredPlan
            >>> plan = StoredPlan({"mechanism": "items", "sigma": 1.2})
            >>> words = vp.Release.from_items(pa.array(["@bob", "ann", "tea"]), plan, vp.Guarantee(4, 1e-7))
            >>> words.without(["Ann"], mentions=True).to_list()
            ['tea']
        """
        blocked = [*public_words(words), *names_of_persons(names)]
        grams = without_words(self.grams, self.keys, self.token_source, blocked, public_words(keep), mentions=mentions)
        known = self.known
        if known is not None:
            left = pc.is_in(single_items(self.grams), value_set=single_items(grams))
            known = known[np.asarray(left)]
        return replace(self, grams=grams, id=None, known=known)

    def count(
        self,
        data: "Corpus",
        budget: Budget,
        *,
        counted_in_full: int | None = None,
        known: Any = None,
        ledger: "Account | None" = None,
        seed: int | None = None,
    ) -> "Counts":
        """Count the users of each released gram, with noise and a separate budget.

        The counts concern the same users as the release, so the budgets of the counts and the release add up.
        `counts.total` is the sum. With a public list, each item of the list has a noisy count too, even if no user has
        it.

        Args:
            data: The data set, read as for the release.
            budget: The budget of the counts.
            counted_in_full: The number of released words up to which a user counts in full. For each further length of
                grams, the number is halved. The noise grows with the square root of the sum of these numbers. A user
                with a larger number n of grams counts as sqrt(counted_in_full / n) for each gram. By default the number
                is chosen privately to minimize the mean error (docs/privacy/counts.md).
            known: Public items that are counted whether or not they were released, in any form that `voxpop.Items`
                accepts. The list must not be made from the data (docs/guides/dashboard.md).
            ledger: The account to charge (see `voxpop.Ledger`).
            seed: Makes the counts reproducible and NOT private, and marks them accordingly. Omit it for real data.

        Returns:
            The grams with noisy numbers of users and their standard error.
        """
        # The registry imports the mechanism, because this package must not import mechanisms.
        counts: Counts = (
            configuration("counts")(counted_in_full, known).plan(budget, self).release(data, ledger=ledger, seed=seed)
        )
        return counts

    def top(
        self, data: "Corpus", budget: Budget, *, k: int = 10, ledger: "Account | None" = None, seed: int | None = None
    ) -> "Top":
        """Rank the k most frequent released grams, with noise and a separate budget.

        The ranking concerns the same users as the release, so its budget is added to the budget of the release.
        `ranking.total` is the sum. If counts were released anyway, `counts.top(k)` costs nothing.

        Args:
            data: The data set, read as for the release.
            budget: The budget of the ranking.
            k: The number of grams, at most a million. The noise grows with the square root of k.
            ledger: The account to charge (see `voxpop.Ledger`).
            seed: Makes the ranking reproducible and NOT private, and marks it accordingly. Omit it for real data.

        Returns:
            The grams in noisy order, without counts.
        """
        ranking: Top = configuration("top")(k).plan(budget, self).release(data, ledger=ledger, seed=seed)
        return ranking

    def _write(self, folder: str | PathLike[str], *, overwrite: bool) -> None:
        content = {
            **({"id": self.id} if self.id else {}),
            **record_of(self),
            **({"token_source": self.token_source} if self.token_source else {}),
            **({} if self.keys is None else {"keys": self.keys.to_list()}),
            **({} if self.known is None else {KNOWN_KEY: b64encode(np.packbits(self.known).tobytes()).decode()}),
        }
        RELEASE.save(content, {TABLE_FILE: to_parquet(self.grams, self.keys)}, self._page, folder, overwrite=overwrite)

    def _page(self, checksums: Mapping[str, str]) -> bytes:
        return report_of(self, checksums)

    def __len__(self) -> int:
        return int(self.grams.num_rows)

    def __iter__(self) -> Iterator[Any]:
        if self.keys is None:
            yield from self.each_gram()
            return
        for batch in self.grams.to_batches(max_chunksize=_GRAMS_AT_ONCE):
            yield from self.keys.values(batch.column("gram").flatten())

    def __contains__(self, gram: object) -> bool:
        """Return whether an item (in the form that iteration yields) or a gram was released.

        A gram is a tuple or list of tokens. For phrases of texts, a gram may also be one string with spaces between the
        tokens.
        """
        if self.keys is not None and self.keys.columns:
            item = self.keys.item(gram)
            return item is not None and (item,) in self._members
        wanted = (gram,) if isinstance(gram, str) else tuple(gram) if isinstance(gram, list) else gram
        of_text = self.keys is None and self.token_source not in ("tokens", "sequence")
        phrase = tuple(gram.split()) if isinstance(gram, str) and of_text else wanted
        return wanted in self._members or phrase in self._members

    def __eq__(self, other: object) -> bool:
        """Compare the grams, plans, guarantees, key columns and sources of tokens."""
        if not isinstance(other, Release):
            return NotImplemented
        mine, theirs = ((each.guarantee, each.token_source, each.keys) for each in (self, other))
        return mine == theirs and self.plan.to_dict() == other.plan.to_dict() and bool(self.grams.equals(other.grams))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        noun = "gram" if self.keys is None else "item"
        return f"Release({len(self):,} {noun}{'' if len(self) == 1 else 's'}, {self.guarantee})"

    def _repr_html_(self) -> str:
        """Return the guarantee and a sample of the grams for a notebook, with words before punctuation."""
        noun = "gram" if self.keys is None else "item"
        title = f"{len(self):,} {noun}{'' if len(self) == 1 else 's'} released"
        sample = words_first(self.each_gram())[:: max(1, ceil(len(self) / SAMPLE_SIZE))]
        some = " · ".join(all_printable(sample)) + (" …" if len(self) > SAMPLE_SIZE else "")
        words = some or "No item had enough users."
        lines = [str(self.guarantee), words, "A release has no counts of users."]
        return card(title, lines, warned=cautions(self.guarantee))

    def _known_item(self, gram: tuple[str, ...]) -> bool | None:
        """Return whether an item was on the public list, or None if it was not released or this is not recorded."""
        if self.known is None or gram not in self._members:
            return None
        items = single_items(self.grams)
        return bool(self.known[pc.index(items, pa.scalar(gram[0], items.type)).as_py()])

    @cached_property
    def _members(self) -> frozenset[tuple[str, ...]]:
        return frozenset(self.each_gram())

    @cached_property
    def _completer(self) -> "Completer":
        return Completer(self.each_gram(), self.token_source)


def report_of(
    release: Release,
    checksums: Mapping[str, str],
    grids: Sequence["Grid"] = (),
    counts: Int64s | None = None,
    *,
    ranked: bool = False,
    total: "Total | None" = None,
) -> bytes:
    """Return the page of a release. The pages of equal releases have equal bytes.

    Args:
        release: The release.
        checksums: The checksums of the other files in the folder.
        grids: Tables that precede the tables of the plan.
        counts: A noisy count of each gram, at least 0, if counts are released.
        ranked: Whether one of the tables is a ranking.
        total: The total of several results.
    """
    lengths = release.grams["length"].value_counts().to_pylist()
    sizes = {int(row["values"]): int(row["counts"]) for row in lengths}
    story = story_of(release.plan.to_dict(), sizes)
    keys = [] if release.keys is None else [each.name for each in release.keys.columns]
    marks = None if release.known is None else release.known.astype(np.int64)
    story = replace(
        story,
        ranked=ranked,
        grids=[*grids, *story.grids],
        completes=story.completes and not keys,
        keys=keys if len(keys) > 1 else [],
    )
    return page_of(story, release, sizes, release.grams, release.token_source, counts, checksums, total, marks)


def release_of(record: Mapping[str, Any], tables: Mapping[str, bytes]) -> Release:
    """Restore the release from a record and its tables."""
    keys = None if record.get("keys") is None else Keys.from_list(record["keys"])
    grams, token_source, name = (
        from_parquet(tables[TABLE_FILE], keys),
        record.get("token_source", ""),
        record.get("id", ""),
    )
    known = None
    if KNOWN_KEY in record:
        marks = np.unpackbits(np.frombuffer(b64decode(record[KNOWN_KEY], validate=True), np.uint8))
        if marks.size - grams.num_rows not in range(8) or marks[grams.num_rows :].any():
            raise ValueError("the marks of known items do not fit")
        known = marks[: grams.num_rows].astype(np.bool_)
    return Release(grams, token_source=str(token_source), keys=keys, id=str(name), known=known, **restored(record))
