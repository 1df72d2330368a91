"""Public explanations of missing items, public comparisons of settings, and PRIVATE evaluations of results."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.engine.contract import Engine, check_engine
from voxpop.engine.local.exact import PRIVATE, ExactCount, counted, numbers_in, users_of
from voxpop.errors import InputError, on_one_line
from voxpop.files.progress import rounded
from voxpop.kernels.arrays import Int64s
from voxpop.privacy.budget import Budget, Printed, check_budget, check_whole, printable, table
from voxpop.privacy.planned import DiscoveryPlan
from voxpop.reading.arrow import joined
from voxpop.reading.one_text import cut_prompt
from voxpop.release.counts import Counts, Top
from voxpop.release.explaining import (
    Explanation,
    about_list,
    folded_gram,
    key_text,
    once_released,
    reasons_of_plan,
    users_needed_of,
)
from voxpop.release.registry import load_object, mechanism_called
from voxpop.release.release import Release
from voxpop.release.table import Gram
from voxpop.release.verifying import plan_again

if TYPE_CHECKING:
    import polars as pl

    from voxpop.engine.data import Corpus

MOST_SIMILAR = 5
"""The maximum number of similar released items in an explanation."""
LEVELS = (10, 20, 50, 100, 200, 500, 1000)
"""The minimum numbers of users for the rows of an evaluation by default."""


def explain(release: Release, item: Any, corpus: "Corpus | None" = None, *, exact: bool = False) -> Explanation:
    """Return the reasons why an item was released or may be missing, as in `Release.explain`."""
    tokens, read = _read(release, item)
    gram = tuple(tokens)
    released = gram in release._members
    plan = _plan_of(release)
    numbers = release.plan.to_dict()
    reasons = [*read, *(once_released(numbers, gram) if released else _of_parts(release, gram))]
    reasons += [] if released or not gram else reasons_of_plan(numbers, gram)
    known = release._known_item(gram)
    reasons += about_list(numbers, known)
    needed = () if plan is None or not gram else users_needed_of(plan, len(gram), known=bool(known))
    if plan is None and not released:
        reasons.append("This version cannot compute the plan again, so the number of users needed is unknown.")
    elif not released and needed:
        reasons.append("Otherwise, too few users have it, or the noise was unfavourable.")
    private = "" if corpus is None else _private(release, gram, corpus, exact=exact)
    similar = () if released else _similar(release, gram)
    return Explanation(_shown(item), gram, released, tuple(reasons), needed, similar, private)


def _shown(item: Any) -> str:
    return " ".join(map(str, item)) if isinstance(item, list | tuple) else str(item)


def _read(release: Release, item: Any) -> tuple[Sequence[str], list[str]]:
    """Return the tokens of an item as the release would contain them, and notes on the tokenization."""
    keys, reading = release.keys, release.token_source
    if keys is not None and keys.columns:
        spelled = key_text(keys, item)
        columns = ", ".join(f"{each.name} ({each.kind})" for each in keys.columns)
        if spelled is None:
            return (), [f"It is not a value of the columns of this release: {columns}."]
        return (spelled,), [f"Read as a value of {columns}."]
    if isinstance(item, str) and reading in ("items", "tokens", "sequence"):
        return ((item,) if item else ()), ["Compared unchanged, because values of columns are not normalized."]
    if not isinstance(item, str) and not (isinstance(item, list | tuple) and all(isinstance(t, str) for t in item)):
        raise InputError(f"`item` must be a text or a list of tokens, got {type(item).__name__}. Give one of them.")
    tokens = cut_prompt(item, reading, {token for gram in release._members for token in gram}).tokens
    if not isinstance(item, str):
        return tokens, []
    if not tokens:
        return (), [f"The tokenizer {reading!r} finds no token in it, so no release contains it."]
    how = f"by the tokenizer {reading!r}" if reading else "at spaces, because the tokenizer of the data has no name"
    if tokens == [item]:
        return tokens, []
    return tokens, [f"Read as {' | '.join(map(on_one_line, tokens))} {how}."]


def _of_parts(release: Release, gram: Gram) -> list[str]:
    """Return the reasons that follow from the released parts of a gram."""
    if len(gram) < 2:
        return []
    if release.keys is not None:
        found = [token for token in gram if (token,) in release._members]
        which = f"Released alone: {', '.join(map(on_one_line, found))}. " if found else ""
        return [
            f"This release contains single items, and the text is {len(gram)} of them. {which}Release phrases with "
            "NGrams, or split texts with another tokenizer."
        ]
    missing = [
        gram[first : first + size]
        for size in range(1, len(gram))
        for first in range(len(gram) - size + 1)
        if gram[first : first + size] not in release._members
    ]
    if not missing:
        return ["All its parts were released, so it was a candidate."]
    part = printable(missing[0])
    return [f"Its part {part} was not released, so it was not a candidate. Explain {part} next."]


def _plan_of(release: Release) -> Any:
    """Return a plan that computes the number of users needed, or None if this version cannot create it."""
    if isinstance(release.plan, DiscoveryPlan):
        return release.plan
    numbers = release.plan.to_dict()
    if mechanism_called(str(numbers.get("mechanism"))) is None:
        return None
    try:
        plan = plan_again(numbers, release)
    except Exception:  # The numbers in a folder are untrusted.
        return None
    return plan if isinstance(plan, DiscoveryPlan) else None


def _similar(release: Release, gram: Gram) -> tuple[Gram, ...]:
    wanted = folded_gram(gram)
    if not wanted:
        return ()
    return tuple(each for each in release.each_gram() if folded_gram(each) == wanted)[:MOST_SIMILAR]


def _private(release: Release, gram: Gram, corpus: "Corpus", *, exact: bool) -> str:
    """Return a sentence with the private number of users of a gram."""
    engine = check_engine(corpus)
    check_same_reading(release, engine)
    users = users_of(engine.gathered(), gram) if gram else 0
    return f"Users of the data who have it: {rounded(users, exact=exact)}."


def check_same_reading(release: Release, engine: Engine) -> None:
    """Raise an error if the tokens of a corpus and the tokens of a release were created differently.

    Raises:
        InputError: The tokenizer or the columns differ.
    """
    if engine.token_source != release.token_source or engine.keys.names != (release.keys.names if release.keys else []):
        raise InputError(
            "the corpus must be read like the data of the release, but its columns or its tokenizer differ. Read it "
            "again with the same arguments."
        )


def compare(compared: Any, budgets: Budget | Sequence[Budget] | None = None) -> "pl.DataFrame":
    """Compare settings by the number of users that an item needs, or releases by their common items. Reads no data.

    Args:
        compared: A list of mechanisms, plans or releases, or a dictionary that also names the rows.
        budgets: One or several budgets, for mechanisms. Each mechanism is planned for each budget.

    Returns:
        For mechanisms and plans, one row for each length of phrases and number of items per user, with the columns
        `name`, `guarantee`, `length`, `per_user` (null if the number does not matter), `users_50` and `users_95`, which
        are the numbers of users that an item needs to be released with a probability of 50 % and 95 %. For releases,
        one row for each pair, with the numbers of items in the `first` release, in the `second` and in `both`, and the
        `share` of their items that are in both.

    Raises:
        InputError: If the list is empty or mixes kinds, or budgets are missing.

    Example:
        >>> import voxpop as vp
        >>> settings = {"20 items": vp.Items(max_items_per_user=20), "100 items": vp.Items(max_items_per_user=100)}
        >>> needed = vp.compare(settings, vp.Budget(epsilon=2, delta=1e-7))
        >>> needed.select("name", "per_user", "users_50").rows()[:3]
        [('20 items', 1, 17), ('20 items', 10, 51), ('20 items', 100, 360)]
    """
    import polars as pl

    named = dict(compared) if isinstance(compared, Mapping) else None
    listed = list(named.values() if named is not None else compared if isinstance(compared, list | tuple) else [])
    names = [str(name) for name in named] if named is not None else [_name(each) for each in listed]
    if not listed:
        raise InputError(
            "`compared` must be a list or a dictionary of mechanisms, plans or releases, and must not be empty."
        )
    if all(isinstance(each, Release) for each in listed):
        if budgets is not None:
            raise InputError("`budgets` applies only to mechanisms. Remove it.")
        return pl.DataFrame([_shared(one, other) for one, other in combinations(zip(names, listed, strict=True), 2)])
    plans = [plan for pair in zip(names, listed, strict=True) for plan in _planned_pairs(*pair, budgets)]
    rows = [
        {"name": name, "guarantee": str(plan.guarantee), "length": length, **row}
        for name, plan in plans
        for length in range(1, (plan.longest or 1) + 1)
        for row in users_needed_of(plan, length)
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def _name(compared: Any) -> str:
    """Return the title of a release, or the settings of a mechanism or a plan."""
    if isinstance(compared, Release):
        return compared.metadata.title or repr(compared)
    return repr(getattr(compared, "mechanism", compared))


def _planned_pairs(name: str, given: Any, budgets: Budget | Sequence[Budget] | None) -> list[tuple[str, Any]]:
    if isinstance(given, DiscoveryPlan):
        return [(name, given)]
    if not callable(getattr(given, "plan", None)):
        raise InputError(
            "`compared` must contain only mechanisms and plans that release items, or only releases, got a value "
            f"of type {type(given).__name__}. Give such objects."
        )
    some = [budgets] if isinstance(budgets, Budget) else list(budgets or ())
    if not some:
        raise InputError("comparing mechanisms requires budgets. Give budgets=vp.Budget(epsilon=2, delta=1e-7).")
    for each in some:
        check_budget(each)
    plans = [given.plan(each) for each in some]
    if not all(isinstance(each, DiscoveryPlan) for each in plans):
        raise InputError(f"{type(given).__name__} does not compute the number of users that an item needs. Remove it.")
    return [(name, plan) for plan in plans]


def _shared(one: tuple[str, Release], other: tuple[str, Release]) -> dict[str, Any]:
    (first, mine), (second, theirs) = one, other
    both = len(mine._members & theirs._members)
    every = len(mine) + len(theirs) - both
    return {
        "first": first,
        "second": second,
        "items_of_first": len(mine),
        "items_of_second": len(theirs),
        "both": both,
        "share": both / every if every else 1.0,
    }


@final
@dataclass(frozen=True, repr=False)
class Evaluation(Printed):
    """The quality of a result, measured on the data of the release. The evaluation is PRIVATE.

    Attributes:
        facts: The exact figures by name.
        rows: One dictionary for each length and number of users, with the keys `length`, `users` (minimum number of
            users), `items` (number of items with at least this number of users), `released` (number of these items that
            were released) and `share`.
    """

    facts: dict[str, float]
    rows: tuple[dict[str, float], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the facts and rows as a dictionary for JSON that is marked as private."""
        return {"private": PRIVATE, "facts": dict(self.facts), "rows": [dict(row) for row in self.rows]}

    def to_polars(self) -> "pl.DataFrame":
        """Return the rows as a polars table."""
        import polars as pl

        return pl.DataFrame(list(self.rows))

    def __str__(self) -> str:
        lines = [
            f"  {name}: {f'{value:.4g}' if isinstance(value, float) else f'{value:,}'}"
            for name, value in self.facts.items()
        ]
        cells = [["length", "users at least", "items", "released", "share"]] if self.rows else []
        for row in self.rows:
            numbers = [f"{row[name]:,}" for name in ("length", "users", "items", "released")]
            cells.append([*numbers, f"{row['share']:.1%}"])
        return "\n".join([PRIVATE, *lines, *(table(cells) if cells else [])])


def evaluate(result: Any, corpus: "Corpus", *, users: Sequence[int] = LEVELS) -> Evaluation:
    """Measure the quality of a result on the data of the release. The figures are PRIVATE, because they are exact.

    Do not publish the figures. Do not repeat a release until the figures are good, because each release spends its
    budget.

    Args:
        result: A release, its counts or its ranking, or a model of sequences.
        corpus: The data, read as for the release.
        users: The minimum numbers of users. For each number, the evaluation contains the released share of the items
            with at least this number of users.

    Returns:
        For a release, the released share of frequent items, the number of released items without users, and the share
        of all occurrences of items or phrases that it covers. For counts, the errors of the numbers of users. For a
        ranking, the share of its grams that are truly among the first places. For a model, the similarity of drawn
        sequences to the sequences of users. The similarity is measured by distances and errors, which are 0 at best,
        and by the share of the most frequent runs that drawn sequences contain.

    Raises:
        InputError: If the result has no evaluation, or the corpus was read with other arguments.

    Example:
        >>> import polars as pl
        >>> import voxpop as vp
        >>> table = pl.DataFrame({"who": range(3000), "what": ["tea", "milk", "oats"] * 1000})
        >>> corpus = vp.read(table, user="who", items="what")
        >>> found = vp.Items(max_items_per_user=1).release(corpus, vp.Budget(epsilon=1, delta=1e-8))
        >>> print(vp.evaluate(found, corpus, users=[100, 1000]))
        PRIVATE: computed from the data without noise. Do not publish it.
          released: 3
          released that no user has: 0
          share of occurrences covered, length 1: 1
          length  users at least  items  released   share
               1             100      3         3  100.0%
               1           1,000      3         3  100.0%
    """
    place = EVALUATIONS.get(type(result).__name__)
    if place is None:
        raise InputError(
            f"`result` must be one of {', '.join(EVALUATIONS)}, got a value of type {type(result).__name__}. "
            "Give one of them."
        )
    found: Evaluation = load_object(place)(result, corpus, users)
    return found


EVALUATIONS = {
    "Release": "voxpop.release.questions:evaluate_release",
    "Counts": "voxpop.release.questions:evaluate_counts",
    "Top": "voxpop.release.questions:evaluate_top",
    "SequenceModel": "voxpop.mechanisms.sequences.evaluate:evaluate_model",
}
"""The evaluation function of each class of results. Its arguments are the result, the corpus and the numbers of
users."""


def evaluate_release(release: Release, corpus: "Corpus", users: Sequence[int]) -> Evaluation:
    """Return the evaluation of a release, as in `evaluate`."""
    levels = sorted(set(users))
    for level in levels:
        check_whole("users", level, 2**62, "a number of users", least=2)
    facts: dict[str, float] = {"released": len(release), "released that no user has": 0}
    rows: list[dict[str, float]] = []
    for each in _counted(release, corpus):
        facts["released that no user has"] += int((each.listed == 0).sum())
        share = each.covered / each.occurrences if each.occurrences else 0.0
        facts[f"share of occurrences covered, length {each.length}"] = share
        for level in levels:
            items, released = int((each.users >= level).sum()), int((each.listed >= level).sum())
            row = {"length": each.length, "users": level, "items": items, "released": released}
            rows.append({**row, "share": released / items if items else 1.0})
    return Evaluation(facts, tuple(rows))


def evaluate_counts(counts: Counts, corpus: "Corpus", _: Sequence[int]) -> Evaluation:
    """Return the errors of counts, as in `evaluate`."""
    errors = np.abs(counts.users - _true_users(counts.rows, corpus))
    if not errors.size:
        return Evaluation({"counts": 0})
    return Evaluation(
        {
            "counts": int(errors.size),
            "standard error of the noise": float(counts.error),
            "median error in users": float(np.median(errors)),
            "largest error in users": float(errors.max()),
            "share within two standard errors": float((errors <= 2 * counts.error).mean()),
        }
    )


def evaluate_top(ranking: Top, corpus: "Corpus", _: Sequence[int]) -> Evaluation:
    """Return the share of ranked grams that are truly among the first places, as in `evaluate`."""
    true, number = _true_users(ranking.grams, corpus), len(ranking)
    if not number:
        return Evaluation({"places": 0})
    least = np.sort(true)[::-1][number - 1]  # Ties with the last place count as correct.
    share = float((true[ranking.places] >= least).mean())
    return Evaluation({"places": number, "share of the true first places": share})


def _true_users(release: Release, corpus: "Corpus") -> Int64s:
    """Return the exact, and therefore private, number of users of each gram, in the order of the release."""
    return np.concatenate([each.listed for each in _counted(release, corpus)])


def _counted(release: Release, corpus: "Corpus") -> Iterator[ExactCount]:
    """Count the grams of a corpus up to the maximum length of a release, and the grams of the release."""
    engine = check_engine(corpus)
    check_same_reading(release, engine)
    held, listed = engine.gathered(), {}
    for length in sorted(set(release.grams["length"].to_pylist())):
        grams = release.grams.filter(pc.equal(release.grams["length"], length))["gram"]
        tokens = pc.list_flatten(joined(grams)).cast(pa.large_string())
        listed[length] = numbers_in(held, tokens).reshape(-1, length)
    return counted(held, listed)
