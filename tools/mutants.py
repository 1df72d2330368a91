"""Small faults in executed code and in terms of the proofs. The tests of an area must detect each fault in it.

usage: python -m tools.mutants [NAME ...] [--list]

Each mutant is one replacement in a copy of the checkout. The tests that are listed for its area run in this copy until
one fails. If a mutant survives, it is reported and the exit code is 1. Each mutant takes minutes, so this command is
not part of the checks of every commit.
"""

# ruff: noqa: E501
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
LIMIT = 600
"""The maximum number of seconds for one file of tests."""

GATE, RUNS, BYTES = "privacy/test_gate.py", "privacy/test_noise_that_runs.py", "privacy/test_transcripts.py"
SCORE, POOLS, BOUND = "privacy/test_cumulative.py", "corpus/test_pools.py", "kernels/test_bound.py"
CAPPED, STEPS, USERS = "kernels/test_capped.py", "kernels/test_step_errors.py", "kernels/test_bounds_of_users.py"
KNOWN = "union/test_known.py"
OWN, SEQUENCES, SERIES = "privacy/test_individual.py", "sequences/test_privacy_of_sequences.py", "series"
ROUNDED, DECIDE, PEELING = "privacy/test_rounded_noise.py", "privacy/test_decide.py", "privacy/test_peeling.py"


class Mutant(NamedTuple):
    """A replacement, with the file in `src/voxpop`, a text that occurs in it once, the fault, and the tests to run."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def _gate(name: str, file: str, old: str, new: str, *tests: str) -> Mutant:
    return Mutant(name, f"privacy/gate/{file}.py", old, new, tests or (RUNS,))


def _proof(name: str, old: str, new: str, *tests: str) -> Mutant:
    return Mutant(name, "privacy/certificate.py", old, new, tests or (BYTES,))


MUTANTS = (
    # The scale of noise in every mechanism.
    _gate("rounds-2%", "rounds", "        sigma=each.sigma,\n", "        sigma=0.98 * each.sigma,\n"),
    _gate("rounds-1%", "rounds", "        sigma=each.sigma,\n", "        sigma=0.99 * each.sigma,\n"),
    _gate("choice-2%", "rounds", "CellNoise(choice.sigma, 1", "CellNoise(0.98 * choice.sigma, 1"),
    _gate("first-1%", "rounds", "ThresholdRule(first.noise, first.scale,", "ThresholdRule(first.noise, 0.99 * first.scale,"),
    _gate("cover-2%", "rounds", "CellNoise(cover.sigma, unit", "CellNoise(0.98 * cover.sigma, unit"),
    _gate("votes-2%", "walks", 'ThresholdRule("gaussian", step.sigma, level', 'ThresholdRule("gaussian", 0.98 * step.sigma, level'),
    _gate("measured-1%", "walks", "CellNoise(step.sigma, shares", "CellNoise(0.99 * step.sigma, shares"),
    _gate("counts-2%", "counts", "CellNoise(chosen.sigma, UNIT", "CellNoise(0.98 * chosen.sigma, UNIT"),
    _gate("keys-2%", "counts", "KeyNumbers(noise, UNIT", "KeyNumbers(replace(noise, rate=noise.rate * 51 / 50), UNIT", "profile/test_key_noise.py", "contracts/test_installed_audit.py"),
    _gate("classes-of-keys-2%", "counts", "WholeNoise(self.proof.choosing,", "WholeNoise(self.proof.choosing * 51 / 50,"),
    _gate("keys-limit", "counts", "engine.weigh(HolderShares(noise.limit), noise.limit,", "engine.weigh(HolderShares(noise.limit + 1), noise.limit + 1,", "profile/test_key_neighbours.py"),
    _gate("classes-1%", "counts", "CellNoise(self.proof.classes_sigma", "CellNoise(0.99 * self.proof.classes_sigma"),
    _gate("ranks-1%", "counts", "GumbelNoise(self.proof.rate", "GumbelNoise(1.01 * self.proof.rate"),
    _gate("nights-1%", "nights", "proof.factors[at], proof.sigmas[at]", "proof.factors[at], 0.99 * proof.sigmas[at]"),
    Mutant(
        "sequences-2%",
        "privacy/path_budget.py",
        "return self.limits.epsilon * self.shares[number].own / self.limits.max_length",
        "return self.limits.epsilon * self.shares[number].own * 51 / 50 / self.limits.max_length",
        (RUNS,),
    ),
    Mutant(
        "sampler-2%",
        "privacy/sampling.py",
        "values = weights / cell + deviations * (sigma * unit / cell) + 0.5",
        "values = weights / cell + deviations * (0.98 * sigma * unit / cell) + 0.5",
        (ROUNDED,),
    ),
    # Thresholds, levels and caps.
    _gate("threshold-of-score", "rounds", "threshold=each.threshold * spread", "threshold=0.99 * each.threshold * spread"),
    _gate("never-dropped", "rounds", "-np.inf if each.drop is None else each.drop * spread", "-np.inf"),
    Mutant("one-vote-less", "privacy/trie/ballot.py", "if count >= self.theta", "if count >= self.theta - 1", (RUNS,)),
    Mutant("cap-2%", "kernels/weigh.py", "min(step, highest)", "min(step, highest + highest // 50)", (CAPPED,)),
    Mutant("dropped-forgotten", "privacy/weightings/capped.py", "level(undecided + dropped - listed)", "level(undecided - listed)", (CAPPED,)),
    Mutant("spare-noise", "engine/local/pools.py", "self._users.states > DROPPED)", "(self._users.states > DROPPED) & (histogram > 0))", (POOLS,)),
    Mutant("held-only", "engine/local/weigh.py", "        return noisy\n", "        return np.where(weights > 0, noisy, 0)\n", ("counts/test_counts.py",)),
    # Public lists.
    _gate("list-size", "gate", "np.multiply(known.tails, known.listed.size)", "np.multiply(known.tails, 1)", KNOWN),
    _gate("list-noise-of-users", "rounds", "        for number in range(len(rounds.later)):\n            step: Any", "        for number in range(0):\n            step: Any", KNOWN),
    _gate("list-frozen-early", "rounds", "threshold=float(levels[-1])", "threshold=float(levels[0])", KNOWN),
    _gate("longer-list", "rounds", "listed.size > rounds.known.listed.size", "listed.size > 2 * rounds.known.listed.size", KNOWN),
    _gate("other-list", "rounds", "if rounds.listed != self.proof.known:", "if rounds.listed is self.proof.known:", KNOWN),
    Mutant("list-caps", "kernels/weigh.py", "gap * factor >= cap and not uncapped[offset]", "gap * factor >= cap", (CAPPED,)),
    Mutant("list-counted", "kernels/weigh.py", "counts[j] += listed[items[position]] != 0", "counts[j] += 1", (KNOWN,)),
    Mutant("list-of-the-pool", "engine/local/pools.py", "kept = self.listed[batch.items] != 0", "kept = self.listed[batch.items] > 1", (KNOWN,)),
    Mutant("list-draws", "privacy/numerics.py", "math.isqrt(2 * pool * (listed + pool))", "math.isqrt(2 * pool * pool)", (KNOWN,)),
    Mutant("list-tails", "privacy/cumulative.py", "all(tail >= released_by(", "all(tail >= 0.8 * released_by(", (KNOWN,)),
    Mutant("list-promise", "mechanisms/rounds/known.py", "return plain if promise is None else raised(promise, plain)", "return plain", (KNOWN,)),
    # Charges, limits and order.
    _gate("cheap-passes", "walks", "or square > paid:", "or square > 2 * paid:", GATE),
    _gate("everybody-pays-nothing", "walks", "self._left -= square", "self._left -= 0", GATE),
    _gate("no-domain", "walks", "step.size != self._kept", "step.size > self._kept", GATE),
    _gate("other-candidates", "walks", "whole = candidates is step.extend", "whole = True", GATE),
    _gate("other-cutpoints", "walks", "if rules != vote.rules or", "if", GATE),
    _gate("twice", "gate", "name in self._ran or not", "not", GATE),
    _gate("night-twice", "nights", 'self._begin(f"{step} {night}")', "pass", GATE),
    _gate("any-order", "gate", "or not self._ran.issuperset(before)", "", GATE),
    _gate("any-data-set", "rounds", "data_set not in self.proof.data_sets or secret", "secret", GATE),
    _gate("same-secret", "rounds", "or secret is self._secret", "", GATE),
    _gate("secret-of-another", "rounds", "self._taken.append(secret)", "pass", GATE),
    _gate("any-entry", "rounds", "or not admits(self.proof.choice, self.proof.slack, rounds)", "", GATE),
    _gate("same-draws", "walks", "or step.name in self._names", "", GATE),
    _gate("paths-forget", "trees", "above = self.numbers[parents].tolist()", "above = [0] * len(parts)"),
    _gate("noise-for-fewer-steps", "trees", "self.paths.count_first(steps)", "self.paths.count_first(max(1, steps - 1))"),
    _gate("all-steps-counted", "trees", "self._counting.count_first(steps)", "None"),
    _gate("bound-forgotten", "walks", 'bounding.bound == MOST_BOUND, "weighted"', 'True, "weighted"', GATE),
    Mutant("limit-plus-one", "kernels/weigh.py", "_smallest(mine.copy(), limit - 1)\n            kept = 0", "_smallest(mine.copy(), limit)\n            kept = -1", (BOUND,)),
    Mutant("overspend", "privacy/individual.py", "np.where(holds, np.minimum(wish, left), 0)", "np.where(holds, wish, 0)", (OWN,)),
    Mutant("bounds-up", "privacy/individual.py", "steps = np.floor(", "steps = np.ceil(", (OWN,)),
    Mutant("free-passes", "engine/local/deferred.py", "self._left = left - costs", "self._left = left", ("corpus/test_payments.py",)),
    # Terms of the proof.
    _proof("choice-for-free", "hypot(1.0 / proof.choice.sigma, sqrt(proof.choice.square))", "sqrt(proof.choice.square)"),
    _proof("later-for-free", "sqrt(_rest(proof.later))", "0.0 * sqrt(_rest(proof.later))"),
    _proof("data-sets", "(many * novel + known)", "(novel + known)", "union/test_several_data_sets.py"),
    _proof("first-round-for-free", "return _first_novel(first) + later", "return later"),
    _proof("caps-2%", "square_of(rounds) <= Fraction(choice.square)", "square_of(rounds) <= Fraction(choice.square) * 2", GATE),
    _proof("margin", "_ensure(margin / 2 <= rounds.margin)", "_ensure(margin / 4 <= rounds.margin)", GATE),
    _proof("mu-of-round", "<= Fraction(each.mu) * Fraction(each.sigma))", "<= 2 * Fraction(each.mu) * Fraction(each.sigma))"),
    _proof("nights-square", "/ Fraction(sigma)) ** 2 > square", "/ Fraction(sigma)) ** 2 > 2 * square", "series/test_series_plan.py"),
    _proof("parts-of-cap", "+ Fraction(later.counting) + cover", "+ Fraction(later.counting)", BYTES),
    Mutant("bulge", "privacy/cumulative.py", "return self._step**2 / (8 * self._rounds.parts[number] ** 2)", "return 0.0", (SCORE,)),
    Mutant("rounding-of-users", "privacy/weightings/builtin.py", "setting.bound * WEIGHT_ROUNDING + sqrt(setting.limit) / setting.unit", "setting.bound * WEIGHT_ROUNDING", (STEPS,)),
    Mutant("rounding-of-caps", "privacy/weightings/capped.py", "error += 4 * WEIGHT_ROUNDING * ONE_CAP / least", "error += 0.0", (CAPPED,)),
    Mutant("decide-le", "privacy/decisions.py", "bool(uniform < rule.exact(weight))", "bool(uniform <= rule.exact(weight))", (DECIDE,)),
)  # fmt: skip


def survives(mutant: Mutant, copy: Path) -> str:
    """Return the result of a mutant, which is the test that failed or "survived"."""
    path = copy / "src" / "voxpop" / mutant.file
    source = path.read_text()
    if source.count(mutant.old) != 1:
        return f"does not apply: the text occurs {source.count(mutant.old)} times"
    path.write_text(source.replace(mutant.old, mutant.new))
    threads = ("NUMBA_NUM_THREADS", "POLARS_MAX_THREADS", "OMP_NUM_THREADS")
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), **dict.fromkeys(threads, "1")}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    command += ["-m", "not slow and not browser and not data"]
    try:
        for tests in mutant.tests:
            given = [*command, f"tests/{tests}"]
            ran = subprocess.run(given, cwd=copy, env=environment, capture_output=True, text=True, timeout=LIMIT)
            failed = re.search(r"^(?:FAILED|ERROR) (\S+)", ran.stdout, re.MULTILINE)
            if failed:
                return f"caught by {failed.group(1)}"
            if ran.returncode:
                return f"not tested: pytest ended with {ran.returncode}"
        return "survived"
    except subprocess.TimeoutExpired:
        return "survived until the tests timed out"
    finally:
        path.write_text(source)


def main() -> int:
    """Run the named mutants, or all mutants."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--list", action="store_true", help="only print the names")
    given = parser.parse_args()
    chosen = [each for each in MUTANTS if not given.names or each.name in given.names]
    if given.list:
        print("\n".join(each.name for each in chosen))
        return 0
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "checkout"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", "out", "__pycache__"), symlinks=True)
        for mutant in chosen:
            start = time.monotonic()
            ended = survives(mutant, copy)
            bad += not ended.startswith("caught")
            print(f"{mutant.name}: {ended} ({time.monotonic() - start:.0f} s)", flush=True)
    print(f"{len(chosen)} mutants, {len(chosen) - bad} caught")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
