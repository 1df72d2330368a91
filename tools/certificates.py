"""Write the certificates of a grid of plans, for `voxpop-check`: `python -m tools.certificates FOLDER`."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import voxpop as vp

BUDGETS = ((0.5, 1e-9), (1.0, 1e-7), (3.0, 1e-7), (8.0, 1e-5))
LIMITS = (1, 10, 100, 300)
LENGTHS = (2, 4)
NIGHTS = (7, 60)


def grid() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the name and the plan of each setting."""
    for epsilon, delta in BUDGETS:
        budget = vp.Budget(epsilon, delta)
        name = f"{epsilon:g}-{delta:g}"
        for limit in LIMITS:
            yield f"set-union-{name}-{limit}", lambda b=budget, n=limit: vp.Items(max_items_per_user=n).plan(b)
        yield f"set-union-{name}-chosen", lambda b=budget: vp.Items().plan(b)
        yield f"set-union-{name}-min-users", lambda b=budget: vp.Items(max_items_per_user=100, min_users=20).plan(b)
        listed = [f"item {number}" for number in range(1000)]
        for limit in (10, 100, None):
            yield (
                f"known-{name}-{limit}",
                lambda b=budget, n=limit, k=listed: vp.Items(max_items_per_user=n, known=k).plan(b),
            )
        profiled = vp.ProfileMechanism({"city": "string", "year": "int64"}, known={"city": listed})
        yield f"profile-known-{name}", lambda b=budget, p=profiled: p.plan(b)
        yield f"data-sets-{name}", lambda b=budget: vp.Items(max_items_per_user=20).plan_each(("one", "two"), b)
        for length in LENGTHS:
            yield (
                f"n-grams-{name}-{length}",
                lambda b=budget, n=length: vp.NGrams(max_length=n, max_phrases_per_user=50).plan(b),
            )
            yield f"n-grams-known-{name}-{length}", lambda b=budget, n=length, k=listed: vp.NGrams(n, known=k).plan(b)
        for nights in NIGHTS:
            yield f"series-{name}-{nights}", lambda b=budget, n=nights: vp.Items().plan_series(b, n)
            yield (
                f"series-known-{name}-{nights}",
                lambda b=budget, n=nights, k=listed: vp.Items(known=k).plan_series(b, n),
            )
        for weighting in ("policy-gaussian", "weighted", "count-laplace"):
            yield (
                f"{weighting}-{name}",
                lambda b=budget, w=weighting: vp.papers.SetUnion(50, w, accounting="joint").plan(b),
            )
        yield f"dpne-{name}", lambda b=budget: vp.papers.DPNE().plan(b)
        for most in (None, 1, 3, 20):
            keyed = vp.KeyCounts({"city": "string"}, [("city",)], most)
            yield f"keys-{name}-{most or 'chosen'}", lambda b=budget, k=keyed: k.plan(b)
        repeated = vp.KeyCounts({"city": "string"}, [("city",)], repeated=True)
        yield f"keys-{name}-repeated", lambda b=budget, k=repeated: k.plan(b)
    for epsilon, delta in BUDGETS[1:3]:
        budget = vp.Budget(epsilon, delta)
        yield f"heavy-hitters-{epsilon:g}", lambda b=budget: vp.HeavyHitters(max_length=8).plan(b)


def main(folder: Path) -> None:
    """Write one file for each plan."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in grid():
        certificate = make().certificate
        (folder / f"{name}.json").write_text(json.dumps(certificate.to_dict()), encoding="utf-8")
        print(name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
