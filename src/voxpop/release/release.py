"""What may leave the building: a set of grams, the plan that ran, and what it guarantees."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, cast, final

import numpy as np
import pyarrow as pa

from voxpop.arrow import numbers_of
from voxpop.choices import Form, Format, TextTokenizer
from voxpop.keys import Keys
from voxpop.mechanisms import configuration
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.in_words import cautions
from voxpop.release.about import NOTHING_SAID, About
from voxpop.release.grams import check_canonical, table_of_items, with_keys
from voxpop.release.released import Plan
from voxpop.release.stated import Stated
from voxpop.showing import SHOWN, card, printable, words_first

if TYPE_CHECKING:
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
    from voxpop.release.ranking import Ranking
    from voxpop.release.tally import Tally

ROWS_AT_ONCE = 65_536


@final
@dataclass(frozen=True, repr=False, eq=False)
class Release(Stated):
    """A released set of grams: it says which, and neither how many users held them nor in what order they came.

    Everything here is public: the set, the plan and the guarantee. A gram is a tuple of tokens; an item is a gram of
    length 1. Rows come in canonical order, by length and then by bytes, so they depend on the set alone.

    A release of items iterates over the items themselves: strings for words, and for keys of a table what their column
    held (7, a date), or tuples of it for several columns. A release of grams iterates over tuples of tokens.

    Attributes:
        grams: pyarrow table with the columns `gram` (list of string) and `length` (int32).
        plan: the numbers that ran; `plan.to_dict()` and `str(plan)` show them.
        guarantee: what the release guarantees, or that it is not private.
        reading: how tokens were made: the tokeniser of texts, or "items", "tokens", "sequence"; "" if not known.
        keys: the columns that items came from, none for words; None for a release of grams. Their types are those of
            the table, and strings where nothing was released.
        about: what the operator says of it, for the report. It is not compared.

    Example:
        >>> import pyarrow as pa
        >>> import voxpop as vp
        >>> from voxpop.release.stored_plan import StoredPlan
        >>> plan = StoredPlan({"mechanism": "set union", "sigma": 1.2})
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
    reading: str = ""
    keys: Keys | None = None
    about: About = NOTHING_SAID

    def __post_init__(self) -> None:
        """Refuse a table in any form but the canonical one."""
        check_canonical(self.grams)
        if self.keys is not None and not len(self):
            # Where values decide a type, one row may have decided it: so types go with what is released.
            object.__setattr__(self, "keys", self.keys.without_types())

    @staticmethod
    def from_items(
        items: Any, plan: Plan, guarantee: Guarantee, reading: str = "", keys: Keys | None = None
    ) -> "Release":
        """Make the release of single items.

        Args:
            items: pyarrow array of strings, distinct and sorted by their UTF-8 bytes.
            plan: the plan that ran.
            guarantee: what it guarantees.
            reading: how tokens were made, where that is known.
            keys: the columns that the items came from; none for words.

        Returns:
            The release.

        Raises:
            InternalError: if the items are not distinct and sorted.
        """
        return Release(table_of_items(items), plan, guarantee, reading, Keys() if keys is None else keys)

    def to_list(self) -> list[Any]:
        """Return what iteration yields: items as strings or as their column held them, grams as tuples of tokens."""
        return list(self)

    def to_arrow(self) -> pa.Table:
        """Return a pyarrow table with the columns `gram` (list of string) and `length` (int32).

        Keys of a table follow under the names and types that their columns had; a column of theirs that is called
        `gram` or `length` takes that place.
        """
        return with_keys(self.grams, self.keys)

    def to_polars(self) -> "pl.DataFrame":
        """Return a polars table with the columns `gram` (list of str) and `length` (i32), and keys as `to_arrow`."""
        import polars as pl

        return cast(pl.DataFrame, pl.from_arrow(self.to_arrow()))

    def to_pandas(self) -> "pd.DataFrame":
        """Return a pandas table with the columns `gram` (list of str) and `length`, and keys; needs pandas."""
        import pandas as pd

        table = self.to_arrow()
        keys = {} if self.keys is None else {name: table[name].to_pandas() for name in self.keys.names}
        ours = {"gram": self.grams["gram"].to_pylist(), "length": self.grams["length"].to_numpy()}
        return pd.DataFrame(ours | keys)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand the table of `to_arrow` to whatever speaks Arrow: `polars.DataFrame(release)`, DuckDB, pandas."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def each_gram(self) -> Iterator[tuple[str, ...]]:
        """Yield every gram as a tuple of tokens, items as tuples of one, in canonical order."""
        for batch in self.grams.to_batches(max_chunksize=ROWS_AT_ONCE):
            # One list of all tokens and their places: a list of its own for each gram takes eight times as long.
            tokens, first = batch.column("gram").flatten().to_pylist(), 0
            for end in np.cumsum(numbers_of(batch.column("length"))).tolist():
                yield tuple(tokens[first:end])
                first = end

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
            >>> said = {"who": range(3000), "what": ["Thank you very much", "thank you for it"] * 1500}
            >>> corpus = vp.read(pl.DataFrame(said), user="who", text="what")
            >>> phrases = vp.NGrams(max_length=3, limit=10).release(corpus, vp.Budget(epsilon=4, delta=1e-8))
            >>> [(each.token, each.context) for each in phrases.complete("I thank you")]
            [('for', ('thank', 'you')), ('very', ('thank', 'you'))]
            >>> [each.token for each in phrases.complete("Thank you v")]
            ['very']
        """
        return self._completer.complete(prompt, limit)

    def to_count_vectorizer(self, tokenizer: TextTokenizer | None = "words", **options: Any) -> "CountVectorizer":
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

    def to_tokenizer(self, tokenizer: TextTokenizer | None = "words", unknown: str = "[UNK]") -> "Tokenizer":
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
        `tally.with_release` states the sum.

        Args:
            corpus: the private side, read as for the release.
            budget: what the counts may spend.
            limit: see `voxpop.Counts`.
            seed: makes the counts reproducible and NOT private, and marks them so; leave it out for real data.
            ledger: an account that is charged first; see `voxpop.Ledger`.

        Returns:
            Grams with noisy numbers of users, and the standard error of each.
        """
        # By the table of mechanisms: this package knows none of them, and no corpus but the one it is handed.
        tally: Tally = configuration("counts")(limit).release(corpus, budget, self, seed, ledger)
        return tally

    def top(
        self, k: int, corpus: "Engine", budget: "Budget", seed: int | None = None, ledger: "Account | None" = None
    ) -> "Ranking":
        """Name the k released grams that most users hold, in order, with a budget of its own.

        The order says something more about the same users, so its budget comes on top of the release's own;
        `ranking.with_release` states the sum. The k first of counts that were released anyway cost nothing:
        `tally.top(k)`.

        Args:
            k: how many; see `voxpop.Top`.
            corpus: the private side, read as for the release.
            budget: what the order may spend.
            seed: makes the order reproducible and NOT private, and marks it so; leave it out for real data.
            ledger: an account that is charged first; see `voxpop.Ledger`.

        Returns:
            The grams, in order; no counts.
        """
        ranking: Ranking = configuration("top")(k).release(corpus, budget, self, seed, ledger)
        return ranking

    def filter(self, table: Any, columns: "str | Sequence[str] | None" = None) -> Any:
        """Keep the rows whose key was released, so that the groups of a group-by betray nobody.

        Only the choice of rows is private: what is then computed about the groups needs a budget of its own.

        Args:
            table: a polars table (also lazy), a pandas or pyarrow table, a DuckDB relation or a Spark table.
            columns: hold the keys: by default the columns that the items of the release came from. For words name a
                column of strings, for grams one of lists.

        Returns:
            A table of the same kind, without the rows that have no key. Rows keep their order where there is one:
            DuckDB and Spark promise none.

        Raises:
            ColumnError: if a column is missing or of another type.
            InputError: if the table is of another kind, or the release does not say which columns.

        Example:
            >>> import polars as pl
            >>> import pyarrow as pa
            >>> from voxpop.release.stored_plan import StoredPlan
            >>> words = Release.from_items(pa.array(["tea"]), StoredPlan({}), Guarantee(4, 1e-7))
            >>> words.filter(pl.DataFrame({"word": ["tea", "oat", "tea"]}), "word")["word"].to_list()
            ['tea', 'tea']
        """
        from voxpop.release.exports.filtering import released_only

        return released_only(self, table, columns)

    def with_other(self, table: Any, columns: "str | Sequence[str] | None" = None, other: Any = "other") -> Any:
        """Put the rows whose key was not released into one group, "everything else".

        As with `filter`, only the grouping is private: how many rows the groups have needs a budget of its own.

        Args:
            table: as for `filter`.
            columns: as for `filter`; not lists.
            other: the key that these rows get in each of the columns, of the columns' type: "other" fits strings, and
                None fits all. Rows without a key get it, too.

        Returns:
            A table of the same kind with all its rows. DuckDB and Spark promise no order.

        Raises:
            ColumnError: if a column is missing or of another type.
            InputError: if `other` is a released key itself or of another type, or the table is of another kind.
        """
        from voxpop.release.exports.other import other_instead

        return other_instead(self, table, columns, other)

    def to_sql(
        self, dialect: str = "duckdb", form: Form = "where", columns: "str | Sequence[str] | None" = None
    ) -> str:
        """Return SQL that keeps the rows whose key was released; needs sqlglot (`pip install voxpop[sql]`).

        Args:
            dialect: "duckdb", "postgres", "bigquery", "snowflake", "sqlite", "spark" or another one that sqlglot
                writes.
            form: "where" is a condition for a WHERE; "select" a query that gives the keys as a table, to join with or
                to save as a model of dbt.
            columns: as for `filter`; items only.

        Raises:
            InputError: for a release of grams, an unknown dialect, or a key that a dialect cannot hold.

        Example:
            >>> import pyarrow as pa
            >>> from voxpop.release.stored_plan import StoredPlan
            >>> words = Release.from_items(pa.array(["it's", "tea"]), StoredPlan({}), Guarantee(4, 1e-7))
            >>> words.to_sql("postgres", columns="word")  # doctest: +SKIP
            a condition in which 'it''s' and 'tea' are the words
        """
        from voxpop.release.exports.sql import sql_of

        return sql_of(self, dialect, form, columns)

    def write(
        self,
        path: str | PathLike[str],
        format: Format | None = None,
        tokenizer: TextTokenizer | None = "words",
        *,
        dialect: str = "duckdb",
        overwrite: bool = False,
    ) -> None:
        """Write the release to one file, whole or not at all.

        Args:
            path: where to.
            format: "text" (a gram per line), "json", "csv", "arrow", "parquet", "vocabulary" (numbers by gram, for
                scikit-learn), "tokenizer" (Hugging Face), "spacy" (patterns of an entity ruler), "gensim" or "sql" (a
                query that gives the keys); by default what the ending of the name says.
            tokenizer: how texts are cut, for "tokenizer".
            dialect: of "sql", as for `to_sql`.
            overwrite: whether to replace a file that is there.

        Raises:
            InputError: where the format is unknown or cannot hold these grams.
            ReleaseError: where the file is there already, or cannot be written.
        """
        from pathlib import Path

        from voxpop.release.exports.files import write
        from voxpop.release.exports.formats import contents, format_of

        name = format_of(Path(path)) if format is None else format
        write(path, lambda: contents(self, name, tokenizer, dialect), overwrite=overwrite)

    def _with_about(self, about: About) -> "Release":
        return replace(self, about=about)

    def _save(self, folder: str | PathLike[str], *, overwrite: bool) -> None:
        from voxpop.release.saving import save_release
        from voxpop.release.stored_plan import StoredPlan

        # The plan's numbers are computed once, for the record and the page.
        stored = replace(self, plan=StoredPlan(self.plan.to_dict()))
        save_release(stored, folder, overwrite=overwrite)

    def __len__(self) -> int:
        return int(self.grams.num_rows)

    def __iter__(self) -> Iterator[Any]:
        if self.keys is None:
            yield from self.each_gram()
            return
        for batch in self.grams.to_batches(max_chunksize=ROWS_AT_ONCE):
            yield from self.keys.values(batch.column("gram").flatten())

    def __contains__(self, gram: object) -> bool:
        """Say whether something was released: an item as iteration yields it, a gram as a tuple or list of tokens."""
        if self.keys is not None and self.keys.columns:
            item = self.keys.item(gram)
            return item is not None and (item,) in self._members
        wanted = (gram,) if isinstance(gram, str) else tuple(gram) if isinstance(gram, list) else gram
        return wanted in self._members

    def __eq__(self, other: object) -> bool:
        """Compare the set, the numbers that ran, and the guarantee."""
        if not isinstance(other, Release):
            return NotImplemented
        mine, theirs = ((each.guarantee, each.reading, each.keys) for each in (self, other))
        return mine == theirs and self.plan.to_dict() == other.plan.to_dict() and bool(self.grams.equals(other.grams))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        noun = "gram" if self.keys is None else "item"
        return f"Release({len(self):,} {noun}{'' if len(self) == 1 else 's'}, {self.guarantee})"

    def _repr_html_(self) -> str:
        """Return the guarantee and the first grams for a notebook, words before punctuation."""
        noun = "gram" if self.keys is None else "item"
        title = f"{len(self):,} {noun}{'' if len(self) == 1 else 's'} released"
        some = " · ".join(map(printable, words_first(self.each_gram())[:SHOWN])) + (" …" if len(self) > SHOWN else "")
        words = some or "Nothing was held by enough users."
        lines = [str(self.guarantee), words, "It says which, not how many users."]
        return card(title, lines, warned=cautions(self.guarantee))

    @cached_property
    def _members(self) -> frozenset[tuple[str, ...]]:
        return frozenset(self.each_gram())

    @cached_property
    def _completer(self) -> "Completer":
        from voxpop.release.completing import Completer

        return Completer(self.grams, self.reading)
