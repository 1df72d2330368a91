"""Fixtures and the sources of randomness of the test suite.

By default, every run is the same, because hypothesis derives the examples from the tests, and secrets are numbered.
With `--hypothesis-seed`, a run has new examples and new secrets.
"""

import gc
import hashlib
import itertools
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from functools import partial, wraps
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # Tests run in parallel, so more threads would only compete.

import numba
import numpy as np
import pytest
from cyclopts import App
from cyclopts.argument import ArgumentCollection
from hypothesis import HealthCheck, settings

from voxpop.kernels import threads
from voxpop.mechanisms.profile import plan as profile_plan
from voxpop.mechanisms.rounds import adaptive, users_needed
from voxpop.privacy import composition, cumulative
from voxpop.privacy.secret import Secret

if numba.config.DISABLE_JIT:
    # 64-bit hashes overflow on purpose. If kernels run as Python, each overflow would look up the filter that ignores
    # the warning, which takes three times as long as the rest. This setting of numpy applies per thread.
    np.seterr(over="ignore")
    threads.ThreadPoolExecutor = partial(ThreadPoolExecutor, initializer=partial(np.seterr, over="ignore"))


def once(compute: Callable[..., Any]) -> Callable[..., Any]:
    """Return a version of a function that computes each result only once per process.

    Hundreds of tests plan for the same few budgets and print the plans. The key contains every argument, so no test
    gets a result for other arguments. No test patches anything that these functions call.
    """
    known: dict[object, Any] = {}

    def value_of(argument: Any) -> object:
        if isinstance(argument, np.ndarray):
            return argument.shape, argument.tobytes()
        if isinstance(argument, list | tuple):  # Guarantees that differ only in their spend are equal.
            return tuple((each, getattr(each, "spend", None)) for each in argument)
        return argument

    @wraps(compute)
    def remembered(*arguments: Any) -> Any:
        key = tuple(map(value_of, arguments))
        if key not in known:
            known[key] = compute(*arguments)
        return copy(known[key])

    return remembered


profile_plan._epsilon_of_rounds = once(profile_plan._epsilon_of_rounds)
profile_plan.planned_parts = once(profile_plan.planned_parts)
cumulative.lone_releases = adaptive.lone_releases = once(cumulative.lone_releases)
users_needed._never = once(users_needed._never)
composition._least_epsilon = once(composition._least_epsilon)
# Caches in `voxpop` look up plans thousands of times. The hash of a whole plan, with the caps of every round, takes
# longer than some of the remembered results. Few plans have equal scores, and equality still compares all fields.
adaptive.AdaptiveRounds.__hash__ = lambda plan: hash(plan.score)


def assembled_once(assemble: Callable[..., ArgumentCollection]) -> Callable[..., ArgumentCollection]:
    """Return a version of `App.assemble_argument_collection` that inspects each command only once per process.

    The parser inspects the signatures and docstrings of a command in every call, which takes longer than most commands
    of the tests. The result depends only on the command. The parser then adds the words of the call to the arguments,
    so each call gets new arguments.
    """
    known: dict[object, tuple[App, ArgumentCollection]] = {}  # An app that is kept here cannot lose its `id`.

    @wraps(assemble)
    def remembered(app: App, **options: Any) -> ArgumentCollection:
        key = id(app), app.default_command, app.app_stack.default_parameter, *sorted(options.items())
        if key not in known:
            known[key] = app, assemble(app, **options)
        copies = {id(each): copy(each) for each in known[key][1]}
        for each in copies.values():
            each.tokens = []
            each.children = ArgumentCollection(copies[id(child)] for child in each.children)
        return ArgumentCollection(copies.values())

    return remembered


App.assemble_argument_collection = assembled_once(App.assemble_argument_collection)

EXAMPLES = int(os.environ.get("VOXPOP_EXAMPLES", "100"))
GENERATED = {"max_examples": EXAMPLES, "deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("voxpop", derandomize=True, **GENERATED)
settings.register_profile("voxpop-random", **GENERATED)
settings.load_profile("voxpop")
NUMBERS = itertools.count()
"""The number of the next secret."""
MODULE = [""]
"""The file of the running test."""


def numbered_secret(cls: type[Secret]) -> Secret:
    """Return a secret that depends only on the file of the test and the number of secrets that the test has drawn."""
    return cls(hashlib.sha256(f"{MODULE[0]} {next(NUMBERS)}".encode()).digest(), private=True)


def pytest_configure(config: pytest.Config) -> None:
    """Make every run the same unless a seed for generated examples is given."""
    if config.getoption("hypothesis_seed", None) is None:
        Secret.fresh = classmethod(numbered_secret)
    else:
        settings.load_profile("voxpop-random")


def pytest_collection_finish() -> None:
    """Exclude all objects that exist before the first test from garbage collection, which would visit them again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Count secrets from 0 in each test, so that they depend neither on other tests nor on the order of tests."""
    global NUMBERS
    MODULE[0], NUMBERS = item.nodeid.partition("::")[0], itertools.count()


ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Return the folder of real data, or skip the test."""
    folder = Path(os.environ.get("VOXPOP_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("no real data: set VOXPOP_DATA to the folder that contains reddit_posts.parquet")
    return folder


@pytest.fixture
def fixed_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace fresh secrets with a sequence of distinct secrets, which is the same in every run.

    Tests use this fixture if they expect particular items in a release without a seed. In these tests, weights are
    three standard deviations above a threshold, so a given frequent item is missing from one release in 700. With
    `--hypothesis-seed`, all other tests draw new secrets.
    """
    numbers = itertools.count()

    def numbered(cls: type[Secret]) -> Secret:
        return cls(hashlib.sha256(str(next(numbers)).encode()).digest(), private=True)

    monkeypatch.setattr(Secret, "fresh", classmethod(numbered))


FEW_SESSIONS = {"queries.MODELS": 4, "queries.SESSIONS": 2000, "queries.SESSIONS_EACH": 100, "constants.FITTED": 1000}
"""Smaller numbers of sessions.

By default, queries draw a million sessions for the intervals that tests/sequences checks.
"""


def draw_few_sessions(patch: pytest.MonkeyPatch) -> None:
    """Reduce the numbers of sessions for the duration of the patch."""
    for name, number in FEW_SESSIONS.items():
        patch.setattr(f"voxpop.mechanisms.sequences.{name}", number)


@pytest.fixture
def few_sessions_in_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw few sessions in one test, which prints, saves or exports answers and does not check their accuracy."""
    draw_few_sessions(monkeypatch)


@pytest.fixture(scope="module")
def few_sessions() -> Iterator[None]:
    """Draw few sessions in all tests of a file."""
    with pytest.MonkeyPatch.context() as patch:
        draw_few_sessions(patch)
        yield


@pytest.fixture(autouse=True, scope="module")
def less_without_the_jit(request: pytest.FixtureRequest) -> Iterator[None]:
    """Without compiled kernels, draw few sessions and use few `PRICES`, because kernels are slow in Python."""
    with pytest.MonkeyPatch.context() as patch:
        if numba.config.DISABLE_JIT:
            request.getfixturevalue("few_sessions")
            patch.setattr("voxpop.mechanisms.ngrams.votes.PRICES", np.geomspace(0.01, 10_000, 25))
        yield
