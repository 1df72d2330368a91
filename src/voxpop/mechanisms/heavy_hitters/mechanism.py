"""The mechanism of heavy hitters, which finds words that many users share without collecting any user's words."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, Literal, final

from voxpop.mechanisms.heavy_hitters.exclude import PublicList
from voxpop.privacy.budget import Budget, check_budget, check_choice, check_whole
from voxpop.privacy.planned import Mechanism, certified

if TYPE_CHECKING:
    from voxpop.engine.data import Corpus  # noqa: F401
    from voxpop.mechanisms.heavy_hitters.plan import HittersPlan
    from voxpop.mechanisms.heavy_hitters.protocol import Rules
    from voxpop.privacy.trie.ballot import Ballot
    from voxpop.release.release import Release  # noqa: F401

LONGEST_WORD: Final = 256
WIDEST_UNIT: Final = 4
AUTO: Final = {"characters": (4, 2), "bytes": (2, 1), "tokens": (1, 1)}
"""The number of symbols in the first round and in each later round, for unit="auto".

With 26 characters, the first round has 475,254 sums, and each later round has 703 sums for each prefix that may grow.
Three rounds of four symbols would need 51 users instead of 62, but 475,255 sums for each prefix (docs/design/0003). For
bytes and tokens, units are shorter, because there are more bytes and tokens than letters.
"""


@final
@dataclass(frozen=True, slots=True)
class HeavyHitters(Mechanism["Corpus", "Release"]):
    """Find the words that many users share, using sampled votes and a threshold.

    In each round, a secret draw selects users. If the most frequent word of a selected user starts with a prefix in the
    trie, the user votes for this prefix, extended by the next symbols of the word. Prefixes with at least theta votes
    are added to the trie. No noise is added, because the secret numbers of votes and the threshold already make the
    release (epsilon, delta)-differentially private if one user, with all their data, is added or removed. The package
    `voxpop-flower` runs the same protocol over Flower among a few honest organisations. Each organisation keeps the
    words of its users. The proof is in docs/privacy/heavy-hitters.md. The algorithm of the paper is
    `voxpop.papers.TrieHH`.

    Attributes:
        max_length: The maximum number of symbols of a word, including its end mark. Longer words are skipped.
        alphabet: The kind of symbols, which are the "characters" or the "bytes" of a word. With "tokens", a word is a
            whole document or sequence (such as a phrase), and its symbols are tokens.
        unit: The number of symbols that each round adds to a prefix, 1 to 4. With longer units there are fewer rounds,
            so a word needs fewer users, but each round has more sums. "auto" selects the longest units that secure
            aggregation can handle. These units are four characters in the first round and two in each later round, two
            bytes in the first round and one in each later round, or one token in every round. The method `sums` of a
            plan returns the numbers of sums.
        exclude: Public words that no user votes for, such as a dictionary or the words of an earlier release. Give an
            iterable of strings, a release, or the path of a text file with one word per line. The tokenizer of the
            data normalises the words. Each user then votes for the most frequent of their other words. The list must
            not depend on data that no release covers. The plan and the release record its size and its fingerprint.

    Raises:
        InputError: A field is out of range.

    Example:
        >>> import polars as pl
        >>> import voxpop as vp
        >>> table = pl.DataFrame({"who": range(1500), "what": ["tea", "milk", "oats"] * 500})
        >>> corpus = vp.read(table, user="who", items="what")
        >>> found = vp.HeavyHitters(max_length=6).release(corpus, vp.Budget(epsilon=1, delta=1e-8))
        >>> found.to_list()
        ['milk', 'oats', 'tea']
        >>> print(found.guarantee)
        (1, 1e-08)-DP, one user added or removed
        >>> vp.HeavyHitters(max_length=6, exclude=found).release(corpus, vp.Budget(epsilon=1, delta=1e-8)).to_list()
        []
    """

    max_length: int = 10
    alphabet: Literal["characters", "bytes", "tokens"] = "characters"
    unit: int | Literal["auto"] = "auto"
    exclude: "Iterable[str | Sequence[str]] | str | PathLike[str] | PublicList" = ()

    def __post_init__(self) -> None:
        """Check every field."""
        check_whole(
            "max_length",
            self.max_length,
            LONGEST_WORD,
            "the maximum number of symbols of a word, including its end mark",
            least=2,
        )
        check_choice("alphabet", self.alphabet, tuple(AUTO))
        if self.unit != "auto":
            check_whole(
                "unit", self.unit, WIDEST_UNIT, 'the number of symbols that each round adds to a prefix, or "auto"'
            )
        object.__setattr__(self, "exclude", PublicList.of(self.exclude))

    @property
    def excluded(self) -> PublicList:
        """The public words that no user votes for."""
        return PublicList.of(self.exclude)

    @property
    def rounds(self) -> int:
        """The number of rounds that a word of the maximum length needs."""
        first, unit = self.units
        # The number of rounds is 1 + ceil((L - first) / unit).
        return 1 + max(0, -(-(self.max_length - first) // unit))

    @property
    def units(self) -> tuple[int, int]:
        """The number of symbols in the first round, and in each later round."""
        return AUTO[self.alphabet] if self.unit == "auto" else (self.unit, self.unit)

    def plan(self, budget: Budget) -> "HittersPlan":
        """Compute the sampling rate and the threshold for a budget, without data.

        Args:
            budget: The privacy budget of all rounds together.

        Raises:
            BudgetError: No sampling rate satisfies the budget.
        """
        from voxpop.mechanisms.heavy_hitters.plan import HittersPlan, check_delta
        from voxpop.privacy.trie.calibrate import best_sampling

        check_budget(budget)
        check_delta(budget)
        best = best_sampling(budget, self.rounds)
        return certified(HittersPlan(self, budget, self.rules(best.ballot)))

    def rules(self, ballot: "Ballot") -> "Rules":
        """Return the public rules of a run with this ballot."""
        from voxpop.mechanisms.heavy_hitters.protocol import Rules

        first, unit = self.units
        return Rules(ballot, self.rounds, unit, self.max_length, self.alphabet, first=first)

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration."""
        fields = {name: getattr(self, name) for name in ("max_length", "alphabet", "unit")}
        listed = {"exclude": self.excluded.to_dict()} if self.excluded.size else {}
        return {"mechanism": "heavy hitters", **fields, **listed}
