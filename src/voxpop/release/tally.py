"""About how many users hold each gram of a release: noisy, so public."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from os import PathLike
from typing import TYPE_CHECKING, Any, cast, final

import numpy as np
import pyarrow as pa

from voxpop.arrays import Int64s
from voxpop.arrow import int64_array
from voxpop.choices import Subwords
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.in_words import cautions
from voxpop.release.release import Release
from voxpop.release.released import Plan
from voxpop.showing import SHOWN, card, printable

if TYPE_CHECKING:
    import polars as pl
    from tokenizers import Tokenizer


@final
@dataclass(frozen=True, repr=False, eq=False)
class Tally:
    """Noisy counts of the users who hold each released gram.

    A count may be below 0 where few hold a gram: that is the noise, and cutting it off would make sums too high. Users
    who hold more grams than the plan's limit count for less than one.

    Attributes:
        grams: the release whose grams were counted.
        users: int64, one noisy number per gram, in the release's order.
        error: standard deviation of the noise on each.
        plan: the numbers that ran.
        guarantee: what the counts guarantee by themselves.
    """

    grams: Release
    users: Int64s
    error: float
    plan: Plan
    guarantee: Guarantee

    @staticmethod
    def of(grams: Release, users: Int64s, error: float, plan: Plan, guarantee: Guarantee) -> "Tally":
        """Return the tally of a release; one number per gram."""
        from voxpop.errors import InternalError

        if len(users) != len(grams):
            raise InternalError("a tally needs one number for each gram; please report the call.")
        return Tally(grams, users, error, plan, guarantee)

    @property
    def with_release(self) -> Guarantee:
        """What the release and its counts guarantee together: both say something about the same users."""
        from voxpop.privacy.composition import compose

        return compose([self.grams.guarantee, self.guarantee])

    def to_arrow(self) -> pa.Table:
        """Return the release's table with a column users (int64), in the release's order.

        A key of the release that is called users itself stands in `gram` alone.
        """
        table = self.grams.to_arrow()
        names = [name for name in table.column_names if name != "users"]
        return table.select(names).append_column("users", int64_array(self.users))

    def to_polars(self) -> "pl.DataFrame":
        """Return a polars table of the columns of `to_arrow`, most users first."""
        import polars as pl

        frame = cast(pl.DataFrame, pl.from_arrow(self.to_arrow()))
        return frame.sort("users", descending=True, maintain_order=True)

    def to_list(self) -> list[tuple[Any, int]]:
        """Return items or grams and their numbers of users, most users first."""
        return list(self)

    def top(self, k: int) -> list[tuple[Any, int]]:
        """Return the k items or grams of most users by these counts, most users first.

        It costs nothing: the counts are public. `release.top` ranks with less noise where k is small.

        Args:
            k: how many.

        Raises:
            InputError: for a number below 1.
        """
        from voxpop.arguments import check_whole

        check_whole("k", k, 2**31, "how many grams are named")
        return list(islice(self, k))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand the table of `to_arrow` to whatever speaks Arrow."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_tokenizer(self, model: Subwords = "bpe", size: int = 8000, unknown: str = "[UNK]") -> "Tokenizer":
        """Train a Hugging Face tokenizer of subwords on the released words and their noisy counts; needs tokenizers.

        Nothing else is looked at, so it has the guarantee of `with_release`, and costs nothing more. Texts are folded
        to NFC and lower case where the release's were.

        Args:
            model: "bpe" (bytes merged: any text is encoded, and decoded to the letter), "wordpiece" (as BERT's) or
                "unigram" (as SentencePiece's).
            size: the most subwords, at least 512; fewer come out where the words give no more.
            unknown: stands for letters that no released word holds; "bpe" has none.

        Raises:
            InputError: where the model is none of these, `unknown` is a released word, or the library is not installed.
        """
        from voxpop.release.exports.subwords import subwords

        return subwords(self.grams, self.each_gram(), model, size, unknown)

    def write(
        self, path: str | PathLike[str], format: Subwords = "bpe", size: int = 8000, *, overwrite: bool = False
    ) -> None:
        """Write the tokenizer of `to_tokenizer` to a file that `tokenizers.Tokenizer.from_file` reads.

        Args:
            path: where to.
            format: the model.
            size: the most subwords.
            overwrite: whether to replace a file that is there.

        Raises:
            InputError: as for `to_tokenizer`.
            ReleaseError: where the file is there already, or cannot be written.
        """
        from voxpop.release.exports.files import write

        write(path, lambda: self.to_tokenizer(format, size).to_str(pretty=True).encode(), overwrite=overwrite)

    def save(self, folder: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Save beside the release, into the folder where that was saved.

        The folder gets `counts.parquet` and `counts.json`.

        Args:
            folder: where the release was saved.
            overwrite: whether to replace counts that are there already.

        Raises:
            ReleaseError: if the folder holds another release or counts, or cannot be written.
        """
        from voxpop.release.additions import TALLIES

        TALLIES.save(self, self.users, folder, overwrite=overwrite)

    @staticmethod
    def load(folder: str | PathLike[str]) -> "Tally":
        """Load the counts that `save` saved, and their release, from the folder that holds both.

        Raises:
            ReleaseError: if there are no counts, or a file is damaged.
        """
        from voxpop.errors import InternalError
        from voxpop.release.additions import TALLIES

        loaded = TALLIES.load(folder)
        try:
            error = float(loaded.plan.to_dict()["error"])
            return Tally.of(loaded.release, loaded.numbers, error, loaded.plan, loaded.guarantee)
        except (KeyError, TypeError, ValueError, InternalError) as wrong:
            raise TALLIES.damaged(folder) from wrong

    def __len__(self) -> int:
        return len(self.grams)

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        """Yield what the release yields and the number of users, most users first, ties in the release's order."""
        order = np.argsort(-self.users, kind="stable")
        grams = self.grams.to_list()
        return ((grams[place], int(self.users[place])) for place in order)

    def each_gram(self) -> Iterator[tuple[tuple[str, ...], int]]:
        """Yield grams as tuples of tokens, items as tuples of one, with their numbers of users, most users first."""
        order = np.argsort(-self.users, kind="stable")
        grams = list(self.grams.each_gram())
        return ((grams[place], int(self.users[place])) for place in order)

    def __getitem__(self, gram: Any) -> int:
        """Return the noisy number of users who hold an item or a gram, named as in `item in release`.

        Raises:
            KeyError: where it was not released.
        """
        keys = self.grams.keys
        if keys is not None and keys.columns:
            return self._places[(keys.item(gram),)]
        return self._places[(gram,) if isinstance(gram, str) else tuple(gram)]

    def __repr__(self) -> str:
        return f"Tally({len(self):,} gram{'' if len(self) == 1 else 's'}, error {self.error:.3g}, {self.guarantee})"

    def _repr_html_(self) -> str:
        """Return guarantee and error, and the grams of most users, for a notebook."""
        rows = [(printable(gram), f"{users:,}") for gram, users in islice(self.each_gram(), SHOWN)]
        title = f"Noisy numbers of users of {len(self):,} gram{'' if len(self) == 1 else 's'}"
        stated = f"{self.guarantee}; with the release: {self.with_release}"
        lines = [f"Standard error of each: {self.error:.3g} users.", stated]
        return card(title, lines, ("gram", "users, about"), rows, cautions(self.with_release))

    @property
    def _places(self) -> dict[Any, int]:
        return dict(zip(self.grams.each_gram(), self.users.tolist(), strict=True))
