"""Heavy hitters: the words that many users hold, found without collecting the words of any (TrieHH, AISTATS 2020)."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, final

from voxpop.arguments import check_budget, check_choice, check_whole
from voxpop.errors import UnsoundError
from voxpop.privacy.budget import Budget

if TYPE_CHECKING:
    from voxpop.corpus.engine import Engine
    from voxpop.hitters.plan import HittersPlan
    from voxpop.privacy.charging import Account
    from voxpop.release import Release

LONGEST = 256
WIDEST_UNIT = 4
_AUTO = {"characters": (4, 2), "bytes": (2, 1), "tokens": (1, 1)}
"""Symbols of the first round and of later ones under unit="auto": the only tuned constants of heavy hitters.

Of 26 characters the first round has 475,255 sums and later ones 703 for each living prefix. Three rounds of four would
need 51 holders instead of 62, and 475,255 sums for each prefix (docs/design/0003). There are more bytes and tokens than
letters, so their units are shorter.
"""
_CHOICES = {
    "words": ("one", "many"),
    "votes": ("one", "several"),
    "sampling": ("bernoulli", "fixed"),
    "accounting": ("exact", "published"),
    "alphabet": ("characters", "bytes", "tokens"),
}


@final
@dataclass(frozen=True, slots=True)
class HeavyHitters:
    """Find the words that many users hold, while each user casts one vote a round and keeps its words to itself.

    In each round a secret coin decides which users are asked. A user whose word starts with a prefix of the trie so far
    votes for that prefix and the word's next symbols; prefixes of at least theta votes grow on the trie. No noise is
    added: secret numbers of votes and the threshold make it (epsilon, delta)-differentially private for one user, with
    everything that user holds, added or removed. `voxpop.hitters.flower` runs the same protocol with words that never
    leave their devices. The proof, and the paper's errors, are in docs/privacy/heavy-hitters.md.

    Attributes:
        max_length: most symbols of a word, its end mark counted; longer words are left out.
        unit: symbols by which prefixes grow in a round, 1 to 4. There are max_length / unit rounds, rounded up, and
            fewer rounds need fewer holders. "auto" asks for as many as keep the sums of a round few enough to be
            added in secret: four characters first and two in every later round, of bytes two and one, of tokens one
            and one. A plan says what each unit costs. With published accounting it is 1, as in the paper.
        words: "one" for each user's most frequent word (the first in order of bytes, if several are), "many" for a word
            drawn anew in each round by how often the user holds it.
        votes: "several" lets a user who is asked vote a second time now and then, and rarely more, for the same prefix:
            a word then needs far fewer holders. "one" is the paper's single vote, as is published accounting.
        sampling: "bernoulli", or "fixed" for the paper's batches of fixed size, which have no proof.
        accounting: "exact" computes delta for what runs; "published" takes rate and threshold from the paper's
            Theorem 1, with its Corollary 2 corrected.
        alphabet: what a symbol is: "characters" or "bytes" of a word, or "tokens": then a word is a whole document or
            sequence, such as a phrase, and a symbol one of its tokens.

    Raises:
        InputError: for a field out of range.
        UnsoundError: for fixed batches with exact accounting, which has no proof for them.

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
    """

    max_length: int = 10
    unit: int | Literal["auto"] = "auto"
    words: Literal["one", "many"] = "one"
    votes: Literal["one", "several"] = "several"
    sampling: Literal["bernoulli", "fixed"] = "bernoulli"
    accounting: Literal["exact", "published"] = "exact"
    alphabet: Literal["characters", "bytes", "tokens"] = "characters"

    def __post_init__(self) -> None:
        """Check every field."""
        check_whole("max_length", self.max_length, LONGEST, "the most symbols of a word with its end mark", least=2)
        if self.unit != "auto":
            check_whole("unit", self.unit, WIDEST_UNIT, 'by how many symbols prefixes grow in a round, or "auto"')
        for name, choices in _CHOICES.items():
            check_choice(name, getattr(self, name), choices)
        if self.sampling == "fixed" and self.accounting == "exact":
            raise UnsoundError(
                'sampling "fixed" with accounting "exact" is refused: in a batch of fixed size whoever is drawn takes '
                "the place of another, so votes for different prefixes depend on each other, and the exact accountant "
                'does not hold (docs/privacy/heavy-hitters.md has a counterexample). Use sampling="bernoulli", or '
                'accounting="published" to reproduce the paper without a guarantee.'
            )

    @property
    def rounds(self) -> int:
        """How many rounds the longest word takes."""
        first, unit = self.units
        # 1 + ceil((L - first) / unit).
        return 1 + max(0, -(-(self.max_length - first) // unit))

    @property
    def units(self) -> tuple[int, int]:
        """Symbols of the first round, and of every later one."""
        if self.accounting == "published":
            # The paper grows by one symbol a round; its accountant knows one unit for all of them.
            return (1, 1) if self.unit == "auto" else (self.unit, self.unit)
        return _AUTO[self.alphabet] if self.unit == "auto" else (self.unit, self.unit)

    def plan(self, budget: Budget) -> "HittersPlan":
        """Choose sampling rate and threshold for a budget: no data needed.

        Args:
            budget: epsilon and delta of all rounds together.

        Returns:
            The plan: the numbers that will run, what they guarantee, and how many holders a word needs.

        Raises:
            BudgetError: where no sampling keeps to the budget.
        """
        from voxpop.hitters.planning import plan_hitters

        check_budget(budget)
        return plan_hitters(self, budget)

    def release(
        self, corpus: "Engine", budget: Budget, seed: int | None = None, ledger: "Account | None" = None
    ) -> "Release":
        """Plan for the budget and run the protocol on all users of a corpus.

        Args:
            corpus: what `voxpop.read` or `voxpop.load_corpus` returned, on this machine.
            budget: epsilon and delta of all rounds together.
            seed: makes samples and votes reproducible and the release NOT private, and marks it so; leave it out.
            ledger: an account that is charged first; see `voxpop.Ledger`.

        Returns:
            The words, in canonical order, with plan and guarantee.
        """
        from voxpop.privacy.charging import run

        return run(self.plan(budget), corpus, seed, ledger)

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration."""
        return {"mechanism": "heavy hitters", **asdict(self)}
