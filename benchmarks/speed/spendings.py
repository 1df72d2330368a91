"""What it costs that words come in rounds and users pay for themselves: the default n-grams against DPNE.

python -m benchmarks.speed.spendings         # about half a minute on a quiet machine
python -m benchmarks.speed.spendings 5       # five turns instead of three
"""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

import voxpop as vp
from benchmarks.support.common import posts, table
from voxpop.engine.local.length_walk import MemoryLengthWalk
from voxpop.engine.local.weigh import Histogram
from voxpop.mechanisms.ngrams import passes

KINDS: dict[str, Any] = {"NGrams": vp.NGrams(limit=100), "DPNE": vp.papers.DPNE(weighting="policy-gaussian")}
FIRST, *_, LAST = KINDS
TURNS = 3
STEPS: dict[str, tuple[Any, str]] = {
    "words in adaptive rounds": (passes, "released_in_rounds"),
    "candidates numbered": (MemoryLengthWalk, "extend"),
    "kept, and deferred candidates stored": (MemoryLengthWalk, "keep"),
    "second-chance pass weighed": (MemoryLengthWalk, "weigh_aside"),
    "noise and levels": (Histogram, "noisy_levels"),
}
"""Methods that are timed by their own name; weighings are by that of their pass."""
PASSES = {"length": "votes weighed", "measurement": "measurements weighed", "prevote": "screening votes weighed"}


def main() -> None:
    """Release with both, in turns in one process, and write."""
    corpus = posts()
    plans = {kind: mechanism.plan(vp.Budget(4, 1e-7)) for kind, mechanism in KINDS.items()}
    for plan in plans.values():  # compile, and read the corpus into memory
        plan.release(corpus, seed=0)
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else TURNS
    wall: dict[str, list[float]] = {kind: [] for kind in KINDS}
    processor: dict[str, list[float]] = {kind: [] for kind in KINDS}
    steps: dict[str, list[Counter[str]]] = {kind: [] for kind in KINDS}
    for turn in range(turns):
        for kind, plan in plans.items():
            with timed() as spent:
                start, before = time.perf_counter(), time.process_time()
                plan.release(corpus, seed=turn)
                wall[kind].append(time.perf_counter() - start)
                processor[kind].append(time.process_time() - before)
            steps[kind].append(spent)
    rows = [["what", *KINDS, "first over last"], line("seconds", wall), line("processor seconds", processor)]
    for step in [*PASSES.values(), *STEPS]:
        rows.append(line(f"of them: {step}", {kind: [each[step] for each in steps[kind]] for kind in KINDS}))
    rest = {
        kind: [all_ - each.total() for all_, each in zip(processor[kind], steps[kind], strict=True)] for kind in KINDS
    }
    rows.append(line("of them: everything else", rest))
    note = f"reddit_posts, T 9, limit 100, at epsilon 4, delta 1e-7: medians of {turns} turns in one "
    note += "process; the ratio is the median of those of the turns. Steps are in processor seconds of both cores."
    table("Speed of n-grams by default", rows, "speed_spendings", note)


def line(what: str, values: dict[str, list[float]]) -> list[object]:
    """Return a row: the medians of all, and the median ratio."""
    ratios = [one / other if other else 0.0 for one, other in zip(values[FIRST], values[LAST], strict=True)]
    ratio = median(ratios)
    return [what, *(f"{median(values[kind]):.2f}" for kind in KINDS), f"{ratio:.2f}" if ratio else "–"]


@contextmanager
def timed() -> Iterator[Counter[str]]:
    """Add up processor seconds by step, as long as the context lasts."""
    spent: Counter[str] = Counter()
    methods = [*STEPS.values(), (MemoryLengthWalk, "weigh")]
    originals = [getattr(owner, name) for owner, name in methods]
    names: list[str | None] = [*STEPS, None]
    for (owner, name), original, step in zip(methods, originals, names, strict=True):
        setattr(owner, name, timing(original, step, spent))
    try:
        yield spent
    finally:
        for (owner, name), original in zip(methods, originals, strict=True):
            setattr(owner, name, original)


def timing(method: Callable[..., Any], step: str | None, spent: Counter[str]) -> Callable[..., Any]:
    """Return a method that adds what it takes to a step; where there is none, to that of its pass."""

    def run(*given: Any) -> Any:
        before = time.process_time()
        try:
            return method(*given)
        finally:
            # A weighing is given its walk, shares, limit, secret and the name of its pass.
            spent[PASSES[given[4].split()[0]] if step is None else step] += time.process_time() - before

    return run


if __name__ == "__main__":
    main()
