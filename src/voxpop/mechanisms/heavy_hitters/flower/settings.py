"""The configuration of a run. The server plans; every node checks that the plan keeps to the budget."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, final

from voxpop.errors import InputError
from voxpop.mechanisms.heavy_hitters.federation import public_symbols
from voxpop.mechanisms.heavy_hitters.mechanism import HeavyHitters
from voxpop.mechanisms.heavy_hitters.plan import HittersPlan, certified_plan
from voxpop.mechanisms.heavy_hitters.protocol import Symbol
from voxpop.privacy.budget import Budget
from voxpop.privacy.secret import Secret
from voxpop.privacy.trie.ballot import Ballot

FIELDS = {"max-length": "max_length", "alphabet": "alphabet", "unit": "unit"}
REMOVED = ("words", "votes", "sampling", "accounting")
"""Settings of earlier versions, whose only remaining value is the default."""
NO_SEED = -1
LEAST_NODES = 3


@final
@dataclass(frozen=True, slots=True)
class Settings:
    """One run.

    Attributes:
        mechanism: the mechanism that runs.
        budget: the budget of the run.
        seed: of a run that is NOT private, or None.
        nodes: number of nodes to wait for before the first round.
        patience: seconds to wait for them, and for the answers of a round or a stage of it.
        output: where the server saves the release.
        secure: whether sums are added up in secret, so that the server sees their total only.
        symbols: the public alphabet, if so.
    """

    mechanism: HeavyHitters
    budget: Budget
    seed: int | None
    nodes: int
    patience: float
    output: str
    secure: bool
    symbols: tuple[Symbol, ...]

    @property
    def plan(self) -> HittersPlan:
        """The plan that the server runs."""
        return _plan(self.mechanism, self.budget)

    def certified(self, ballot: Ballot) -> HittersPlan:
        """Return the plan of a ballot that the server requests, if it keeps to the budget.

        Raises:
            BudgetError: if it does not.
        """
        # Cached by ballot: a run needs it in every round.
        return _certified(self.mechanism, self.budget, ballot)

    def secret(self) -> Secret:
        """Return the secret of a node for one round: its own and fresh, unless the run has a seed."""
        return Secret.of(self.seed)


def settings_of(config: Mapping[str, Any]) -> Settings:
    """Return the settings of a Flower run.

    Args:
        config: its run config: epsilon and delta, and if wanted max-length, alphabet, unit, secure, symbols,
            seed, nodes, patience and output.

    Raises:
        InputError: where something is missing or out of range.
    """
    for name in ("epsilon", "delta"):
        if name not in config:
            raise InputError(f"the run config has no {name}; set it in pyproject.toml or with flwr run --run-config.")
    for name in REMOVED:
        if name in config:
            raise InputError(f"The run config sets `{name}`, which is not a setting any more. Remove it.")
    seed, secure = int(config.get("seed", NO_SEED)), config.get("secure", True)
    nodes = int(config.get("nodes", LEAST_NODES))
    if type(secure) is not bool:
        raise InputError(f"`secure` must be true or false, got {type(secure).__name__}.")
    if secure and nodes < LEAST_NODES:
        raise InputError(
            f"sums of {nodes} nodes cannot be added up in secret: `nodes` must be at least {LEAST_NODES}, or `secure` "
            "false, and then the server sees the sums of each node."
        )
    mechanism = HeavyHitters(**{FIELDS[name]: config[name] for name in FIELDS if name in config})
    return Settings(
        mechanism,
        Budget(float(config["epsilon"]), float(config["delta"])),
        None if seed == NO_SEED else seed,
        nodes,
        float(config.get("patience", 60.0)),
        str(config.get("output", "hitters")),
        secure,
        public_symbols(mechanism.alphabet, str(config.get("symbols", "")) or None) if secure else (),
    )


@lru_cache(maxsize=8)
def _plan(mechanism: HeavyHitters, budget: Budget) -> HittersPlan:
    return mechanism.plan(budget)


@lru_cache(maxsize=8)
def _certified(mechanism: HeavyHitters, budget: Budget, ballot: Ballot) -> HittersPlan:
    return certified_plan(mechanism, budget, ballot)
