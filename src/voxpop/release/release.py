"""What may leave the building: a set of grams, the plan that ran, and what it guarantees."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol, cast, final

import pyarrow as pa

from voxpop.privacy.guarantee import Guarantee
from voxpop.release.grams import check_canonical, table_of_items

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    import polars as pl
    from gensim.models.phrases import FrozenPhrases
    from sklearn.feature_extraction.text import CountVectorizer
    from spacy.matcher import PhraseMatcher
    from tokenizers import Tokenizer

    from voxpop.corpus.engine import Engine
    from voxpop.privacy.budget import Budget
    from voxpop.privacy.charging import Account
    from voxpop.release.completing import Completer, Completion
    from voxpop.release.tally import Tally

ROWS_AT_ONCE = 65_536


class Plan(Protocol):
    """What a release asks of the plan that made it: its public numbers, and its text."""

    def to_dict(self) -> dict[str, Any]:
        """Return the public numbers, ready for JSON."""
        ...


@final
@dataclass(frozen=True, repr=False, eq=False)
class Release:
    """A released set of grams: it says which, and neither how many users held them nor in what order they came.

    Everything here is public: the set, the plan and the guarantee. A gram is a tuple of tokens; an item is a gram of
    length 1. Rows come in canonical order, by length and then by bytes, so they depend on the set alone.

    Attributes:
        grams: pyarrow table with the columns `gram` (list of string) and `length` (int32).
        plan: the numbers that ran; `plan.to_dict()` and `str(plan)` show them.
        guarantee: what the release guarantees, or that it is not private.
        reading: how tokens were made: the tokeniser of texts, or "items", "tokens", "sequence"; "" if not known.

    Example:
        >>> import pyarrow as pa
        >>> import voxpop as vp
        >>> from voxpop.release.stored_plan import StoredPlan
        >>> plan = StoredPlan({"mechanism": "set union", "sigma": 1.2})
        >>> words = vp.Release.from_items(pa.array(["milk", "tea"]), plan, vp.Guarantee(4, 1e-7))
        >>> words
        Release(2 grams, (4, 1e-07)-DP, one user added or removed)
        >>> "tea" in words, ("oat", "milk") in words
        (True, False)
        >>> list(words)
        [('milk',), ('tea',)]
    """

    grams: pa.Table
    plan: Plan
    guarantee: Guarantee
    reading: str = ""

    def __post_init__(self) -> None:
        """Refuse a table in any form but the canonical one."""
        check_canonical(self.grams)

    @staticmethod
    def from_items(items: Any, plan: Plan, guarantee: Guarantee, reading: str = "") -> "Release":
        """Make the release of single items.

        Args:
            items: pyarrow array of strings, distinct and sorted by their UTF-8 bytes.
            plan: the plan that ran.
            guarantee: what it guarantees.
            reading: how tokens were made, where that is known.

        Returns:
            The release.

        Raises:
            InternalError: if the items are not distinct and sorted.
        """
        return Release(table_of_items(items), plan, guarantee, reading)

    def to_arrow(self) -> pa.Table:
        """Return the grams as a pyarrow table with the columns `gram` and `length`."""
        return self.grams

    def to_polars(self) -> "pl.DataFrame":
        """Return the grams as a polars table with the columns `gram` (list of str) and `length` (i32)."""
        import polars as pl

        return cast(pl.DataFrame, pl.from_arrow(self.grams))

    def to_pandas(self) -> "pd.DataFrame":
        """Return the grams as a pandas table with the columns `gram` (list of str) and `length`; needs pandas."""
        import pandas as pd

        return pd.DataFrame({"gram": self.grams["gram"].to_pylist(), "length": self.grams["length"].to_numpy()})

    def complete(self, prompt: str | Sequence[str], limit: int = 10) -> list["Completion"]:
        """Return how released grams go on from here: what comes next, by the longest context, with back-off.

        The longest end of the prompt that a released gram extends is looked up first, then shorter ones, down to the
        last token. Within one context the tokens that most released grams go on with come first; ties go to
        what the shorter context prefers, then to the order of bytes. Nothing of it depends on how many users held what.

        Args:
            prompt: a text, cut as the texts of the release were (where that is known), or a list of tokens. The last
                word of a text may be a beginning: it is completed where it was not released, where no released gram
                has it behind the word before it, or where nothing follows. An empty prompt asks how grams begin.
            limit: most continuations.

        Returns:
            At most `limit` continuations of different tokens, best first; none where nothing fits.

        Raises:
            InputError: for a prompt that is neither a text nor a list of strings, or a limit below 1.

        Example:
            >>> import polars as pl
            >>> import voxpop as vp
            >>> table = pl.DataFrame({"who": range(3000), "what": ["Thank you very much", "thank you for it"] * 1500})
            >>> corpus = vp.read(table, user="who", text="what")
            >>> phrases = vp.NGrams(max_length=3, limit=10).release(corpus, vp.Budget(epsilon=4, delta=1e-8))
            >>> [(each.token, each.context) for each in phrases.complete("I thank you")]
            [('for', ('thank', 'you')), ('very', ('thank', 'you'))]
            >>> [each.token for each in phrases.complete("Thank you v")]
            ['very']
        """
        return self._completer.complete(prompt, limit)

    def to_count_vectorizer(self, tokenizer: Any = "words", **options: Any) -> "CountVectorizer":
        """Return a scikit-learn vectorizer that counts the released grams; needs scikit-learn.

        Args:
            tokenizer: how texts are cut: what `voxpop.read` was given, or None where documents are lists of tokens.
            options: further arguments of `CountVectorizer`, such as `binary=True`.

        Returns:
            A vectorizer whose columns are the grams in canonical order. It needs no fitting.

        Raises:
            InputError: where two grams read the same once their tokens are joined by spaces.
        """
        from voxpop.release.exports.count_vectorizer import count_vectorizer

        return count_vectorizer(self, tokenizer, options)

    def to_tokenizer(self, tokenizer: Any = "words", unknown: str = "[UNK]") -> "Tokenizer":
        """Return a Hugging Face tokenizer whose vocabulary is the released single tokens; needs tokenizers.

        Args:
            tokenizer: how texts are cut: "words", "whitespace", "characters", a compiled regular expression that also
                Rust understands, or None where texts come as lists (`encode(tokens, is_pretokenized=True)`).
            unknown: stands for every other token, with id 0.

        Raises:
            InputError: where `unknown` is a released token, or the tokenizer cannot be part of a file.
        """
        from voxpop.release.exports.word_level import word_level

        return word_level(self, tokenizer, unknown)

    def to_phrase_matcher(self, nlp: Any, label: str = "released", attribute: str = "LOWER") -> "PhraseMatcher":
        """Return a spaCy matcher that finds the released grams; needs spaCy.

        Args:
            nlp: the pipeline that makes the documents; it cuts the patterns too.
            label: what matches are called.
            attribute: what of a token is compared: "LOWER" for released lower case, "ORTH" for exact spelling.
        """
        from voxpop.release.exports.phrase_matcher import phrase_matcher

        return phrase_matcher(self, nlp, label, attribute)

    def to_gensim(self, delimiter: str = "_") -> "FrozenPhrases":
        """Return gensim phrases that join the tokens of released grams; needs gensim.

        One pass over a list of tokens joins pairs, from the left; each further pass joins what is released of longer
        grams: `phrases[phrases[tokens]]`.

        Args:
            delimiter: what stands between joined tokens.

        Raises:
            InputError: where no gram has two tokens, or two grams read the same once joined.
        """
        from voxpop.release.exports.gensim_phrases import gensim_phrases

        return gensim_phrases(self, delimiter)

    def count(
        self,
        corpus: "Engine",
        budget: "Budget",
        limit: "int | Sequence[int]" = 100,
        seed: int | None = None,
        ledger: "Account | None" = None,
    ) -> "Tally":
        """Count about how many users hold each released gram, with a budget of its own: so that grams can be ranked.

        The counts say something more about the same users, so their budget comes on top of the release's own;
        `tally.together` states the sum.

        Args:
            corpus: the private side, read as for the release.
            budget: what the counts may spend.
            limit: see `voxpop.Counts`.
            seed: makes the counts reproducible and NOT private, and marks them so; leave it out for real data.
            ledger: an account that is charged first; see `voxpop.Ledger`.

        Returns:
            Grams with noisy numbers of users, and the standard error of each.
        """
        # By the public face: this package knows no mechanism, and no corpus but the one it is handed.
        import voxpop

        return voxpop.Counts(limit).release(corpus, budget, self, seed, ledger)

    def keep(self, table: Any, column: str) -> Any:
        """Keep the rows whose key was released, so that the groups of a group-by betray nobody.

        Only the choice of rows is private: what is then computed about the groups needs a budget of its own.

        Args:
            table: a polars table (also lazy), a pandas or pyarrow table, a DuckDB relation or a Spark table.
            column: holds keys: strings or whole numbers for single items, lists of them for grams.

        Returns:
            A table of the same kind, without the rows that have no key. Rows keep their order where there is one:
            DuckDB and Spark promise none.

        Raises:
            ColumnError: if the column is missing or of another type.
            InputError: if the table is of another kind.

        Example:
            >>> import polars as pl
            >>> import pyarrow as pa
            >>> from voxpop.release.stored_plan import StoredPlan
            >>> keys = Release.from_items(pa.array(["7", "tea"]), StoredPlan({}), Guarantee(4, 1e-7))
            >>> keys.keep(pl.DataFrame({"shop": [7, 8, 7]}), "shop")["shop"].to_list()
            [7, 7]
        """
        from voxpop.release.exports.keys import keep_released

        return keep_released(self, table, column)

    def write(self, path: str | PathLike[str], format: str | None = None, tokenizer: Any = "words") -> None:
        """Write the grams to one file, whole or not at all; an existing file is replaced.

        Args:
            path: where to.
            format: "text" (a gram per line), "json", "csv", "arrow", "parquet", "vocabulary" (numbers by gram, for
                scikit-learn), "tokenizer" (Hugging Face), "spacy" (patterns of an entity ruler) or "gensim"; by default
                what the ending of the name says.
            tokenizer: how texts are cut, for "tokenizer".

        Raises:
            InputError: where the format is unknown or cannot hold these grams.
            ReleaseError: where the file cannot be written.
        """
        from pathlib import Path

        from voxpop.release.exports.files import write
        from voxpop.release.exports.formats import contents, format_of

        name = format_of(Path(path)) if format is None else format
        write(path, lambda: contents(self, name, tokenizer))

    def save(self, folder: str | PathLike[str]) -> None:
        """Save to a folder, whole or not at all; an earlier release there is replaced in one step.

        The folder gets `release.parquet` (the grams), `release.json` (plan and guarantee) and `report.html`, a page for
        whoever signs the release off. Their bytes depend on the release alone. `voxpop.load` reads them back.

        Args:
            folder: where to; it may be new, empty, or hold a release.

        Raises:
            ReleaseError: if the folder holds anything else, or cannot be written.
        """
        from voxpop.release.saving import save_release

        save_release(self, folder)

    def __len__(self) -> int:
        return int(self.grams.num_rows)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        for batch in self.grams.to_batches(max_chunksize=ROWS_AT_ONCE):
            yield from map(tuple, batch.column("gram").to_pylist())

    def __contains__(self, gram: object) -> bool:
        """Say whether a gram was released: a tuple or list of tokens, or one token as a string."""
        wanted = (gram,) if isinstance(gram, str) else tuple(gram) if isinstance(gram, list) else gram
        return wanted in self._members

    def __eq__(self, other: object) -> bool:
        """Compare the set, the numbers that ran, and the guarantee."""
        if not isinstance(other, Release):
            return NotImplemented
        mine, theirs = (self.guarantee, self.reading), (other.guarantee, other.reading)
        return mine == theirs and self.plan.to_dict() == other.plan.to_dict() and bool(self.grams.equals(other.grams))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Release({len(self):,} gram{'' if len(self) == 1 else 's'}, {self.guarantee})"

    @cached_property
    def _members(self) -> frozenset[tuple[str, ...]]:
        return frozenset(self)

    @cached_property
    def _completer(self) -> "Completer":
        from voxpop.release.completing import Completer

        return Completer(self.grams, self.reading)
