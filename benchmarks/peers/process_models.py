"""Private event logs by other packages, with trace variants of pm4py, and with AIM on a flattened table by mbi.

python process_models.py LOG.parquet OUT.parquet laplace|sacofa|aim EPSILON SEED

LOG has a column sequence (lists of strings), one row for each case. The program writes synthetic sequences and their
weights to OUT.
"""

import importlib.util
import math
import os
import random
import sys
import warnings

import numpy as np
import polars as pl

LEVELS, PRUNED = 10, 4.0
"""The maximum length of prefixes of trace variants, and the noise scales below which a prefix is pruned."""
PLACES, DELTA, ROUNDS_PER_PLACE, LARGEST_MB = 8, 1e-6, 2, 1.0
"""The columns of the flattened table, the delta of AIM, its rounds per column, and the largest model that it may
fit."""


def trace_variants(cases: list[list[str]], epsilon: float, variant: str) -> tuple[list[list[str]], list[float]]:
    """Return the variants that pm4py releases, with their noisy numbers. Epsilon is divided among the levels."""
    from pm4py.algo.anonymization.trace_variant_query import algorithm
    from pm4py.objects.log.obj import Event, EventLog, Trace

    log = EventLog([Trace([Event({"concept:name": name}) for name in case]) for case in cases])
    # pm4py draws noise of scale 1 / epsilon at every level, and a case has a prefix at each.
    each = epsilon / LEVELS
    # Version 2.7 calls this function, which Python no longer has.
    importlib.util.find_loader = importlib.util.find_spec  # type: ignore[attr-defined]
    try:
        events = algorithm.apply(
            log,
            algorithm.Variants.LAPLACE if variant == "laplace" else algorithm.Variants.SACOFA,
            {"epsilon": each, "k": LEVELS, "p": math.ceil(PRUNED / each), "show_progress_bar": False},
        )
    except ValueError:  # no variant is left
        return [], []
    found = pl.DataFrame({"case": events["case:concept:name"].to_numpy(), "name": events["concept:name"].tolist()})
    variants = found.group_by("case", maintain_order=True).agg("name").group_by("name", maintain_order=True).len()
    return variants["name"].to_list(), variants["len"].cast(pl.Float64).to_list()


def rho_of(epsilon: float, delta: float) -> float:
    """Return the largest rho whose zero-concentrated guarantee implies epsilon and delta."""
    orders = np.geomspace(1.0001, 1e4, 4000)

    def delta_of(rho: float) -> float:
        logs = (orders - 1) * (orders * rho - epsilon) + orders * np.log1p(-1 / orders) - np.log(orders - 1)
        return float(np.exp(logs.min()))

    low, high = 0.0, epsilon + 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(middle) <= delta else (low, middle)
    return low


def aim(cases: list[list[str]], epsilon: float, rng: np.random.Generator) -> tuple[list[list[str]], list[float]]:
    """Return sequences drawn from the model that AIM (McKenna et al., 2022) fits to the table of the first places.

    mbi contains the estimation but no mechanism, so the choice of marginals follows the paper. All pairs of columns are
    candidates, with a limit on the model size.
    """
    import itertools

    import jax
    import mbi
    from mbi import junction_tree

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)
    names = sorted({name for case in cases for name in case})
    number = {name: place for place, name in enumerate(names)}
    end, columns = len(names), [str(place) for place in range(PLACES)]
    table = np.full((len(cases), PLACES), end)
    for row, case in enumerate(cases):
        table[row, : len(case)] = [number[name] for name in case[:PLACES]]
    domain = mbi.Domain(columns, [end + 1] * PLACES)
    size = (end + 1) ** 2

    def marginal(clique: tuple[str, ...]) -> np.ndarray:
        key = np.zeros(len(cases), np.int64)
        for name in clique:
            key = key * (end + 1) + table[:, int(name)]
        return np.bincount(key, minlength=(end + 1) ** len(clique)).astype(float)

    rho, rounds = rho_of(epsilon, DELTA), ROUNDS_PER_PLACE * PLACES
    sigma, chosen = math.sqrt(rounds / (2 * 0.9 * rho)), math.sqrt(8 * 0.1 * rho / rounds)
    pairs, measured, left = list(itertools.combinations(columns, 2)), [], rho

    def measure(clique: tuple[str, ...]) -> None:
        noisy = marginal(clique) + rng.normal(0, sigma, (end + 1) ** len(clique))
        measured.append(mbi.LinearMeasurement(noisy, clique, stddev=sigma))

    for column in columns:
        measure((column,))
        left -= 1 / (2 * sigma**2)
    fit = mbi.estimation.MirrorDescent()
    model, taken = fit.estimate(domain, measured, iters=300), set()
    while left > 0:
        last = left < 2 * (1 / (2 * sigma**2) + chosen**2 / 8)
        if last:
            # The last round spends the rest of the budget.
            sigma, chosen = math.sqrt(1 / (2 * 0.9 * left)), math.sqrt(8 * 0.1 * left)
        small = [
            pair
            for pair in pairs
            if junction_tree.hypothetical_model_size(domain, [*taken, pair]) <= LARGEST_MB * (1 - left / rho + 0.1)
        ]
        if not small:
            break
        bias = math.sqrt(2 / math.pi) * sigma * size
        misses = np.array([np.abs(marginal(p) - model.project(p).datavector()).sum() - bias for p in small])
        # This is the exponential mechanism, by Gumbel noise. One case changes a distance by 1.
        pair = small[int(np.argmax(chosen / 2 * misses + rng.gumbel(size=len(small))))]
        before = np.asarray(model.project(pair).datavector())
        measure(pair)
        taken.add(pair)
        left -= 1 / (2 * sigma**2) + chosen**2 / 8
        model = fit.estimate(domain, measured, iters=300, warm_start=model)
        print(f"{pair} left {left / rho:.2f}", file=sys.stderr, flush=True)
        if last:
            break
        if np.abs(np.asarray(model.project(pair).datavector()) - before).sum() <= bias:
            sigma, chosen = sigma / 2, chosen * 2
    drawn = model.synthetic_data()
    cells = np.column_stack([np.asarray(drawn.to_dict()[name]) for name in columns])
    sequences = [[names[cell] for cell in row[: list([*row, end]).index(end)]] for row in cells.tolist()]
    found = [each for each in sequences if each]
    return found, [1.0] * len(found)


def main(log: str, out: str, model: str, epsilon: str, seed: str) -> None:
    """Release one log."""
    warnings.simplefilter("ignore")
    random.seed(int(seed))
    np.random.seed(int(seed))
    cases = pl.read_parquet(log)["sequence"].to_list()
    if model == "aim":
        sequences, weights = aim(cases, float(epsilon), np.random.default_rng(int(seed)))
    else:
        sequences, weights = trace_variants(cases, float(epsilon), model)
    schema = {"sequence": pl.List(pl.String), "weight": pl.Float64}
    pl.DataFrame({"sequence": sequences, "weight": weights}, schema=schema).write_parquet(out)


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    main(*sys.argv[1:])
