"""The guarantee of a person with data on several nodes, and the cost of planning for such persons.

python -m benchmarks.papers.triehh_persons
"""

import math

import voxpop as vp
from benchmarks.support.benchmark import HITTERS, Benchmark

BENCHMARK = Benchmark(__file__, ("triehh_persons",), HITTERS, minutes=1)

DELTA = 1 / 65_876_900
EPSILONS = (1, 2, 4)


def main() -> None:
    """Compute the plans, print and write the results."""
    rows = [
        [
            "nodes per person",
            *(f"epsilon {each} becomes" for each in EPSILONS),
            *(f"holders, {each}" for each in EPSILONS),
        ]
    ]
    for users in (1, 2, 3, 5):
        plans = [vp.HeavyHitters().plan(vp.Budget(epsilon, DELTA)) for epsilon in EPSILONS]
        held = [plan.budget_of_users(users) for plan in plans]
        apart = [vp.HeavyHitters().plan(share(epsilon, users)).users_needed(0.9) for epsilon in EPSILONS]
        rows.append([users, *(f"({each.epsilon:g}, {each.delta:.2g})" for each in held), *apart])
    note = (
        f"Delta {DELTA:.2g}, the default plan. Holders: where a person on so many nodes is to have epsilon and delta "
    )
    note += "of the head: each node's users are planned for with a share of both."
    BENCHMARK.table("A person who is several users", rows, "triehh_persons", note)


def share(epsilon: float, users: int) -> vp.Budget:
    """Return a budget of one user with which this number of users together have (epsilon, DELTA)."""
    # DELTA = d (1 + e^e + ... + e^((m-1) e)) with e = epsilon/m, which is a geometric sum.
    return vp.Budget(epsilon / users, DELTA * math.expm1(epsilon / users) / math.expm1(epsilon))


if __name__ == "__main__":
    main()
