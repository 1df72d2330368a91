"""The configuration of a run. The operator of the server writes this configuration, and every node receives it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from voxpop.errors import InputError
from voxpop.mechanisms.heavy_hitters.mechanism import HeavyHitters
from voxpop.mechanisms.heavy_hitters.plan import HittersPlan
from voxpop.mechanisms.heavy_hitters.protocol import Symbol
from voxpop.privacy.budget import Budget
from voxpop.privacy.trie.ballot import Ballot
from voxpop_flower import federation
from voxpop_flower.masking import LEAST_NODES

FIELDS = {"max-length": "max_length", "alphabet": "alphabet", "unit": "unit"}
NO_SEED = -1
PATIENCE = 300.0
"""The number of seconds that a busy machine may need for one stage of a round."""


@final
@dataclass(frozen=True, slots=True)
class Settings:
    """The configuration of one run.

    Attributes:
        mechanism: The mechanism that runs, without the words of `exclude`. The server sends these words.
        budget: The budget of the run.
        seed: The seed of a run that is NOT private, or None.
        nodes: The number of nodes to wait for before the first round.
        patience: The maximum number of seconds to wait for the nodes, and for the answers of a round or stage.
        output: The output folder of the release on the server.
        secure: Whether secure aggregation adds the sums, so that the server receives only their total.
        symbols: The public alphabet of secure aggregation.
        exclude: The server's file of public words that users do not vote for, or "".
        ledger: The server's ledger, or "".
        dataset: The data set in that ledger.
    """

    mechanism: HeavyHitters
    budget: Budget
    seed: int | None
    nodes: int
    patience: float
    output: str
    secure: bool
    symbols: tuple[Symbol, ...]
    exclude: str = ""
    ledger: str = ""
    dataset: str = ""

    @property
    def plan(self) -> HittersPlan:
        """The plan that the server runs."""
        return self.mechanism.plan(self.budget)

    def terms(self) -> dict[str, Any]:
        """Return all values that determine the votes of a run. A node requires the same terms in every round."""
        return {
            "mechanism": self.mechanism.to_dict(),
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "seed": self.seed,
            "secure": self.secure,
            "symbols": [str(symbol) for symbol in self.symbols],
        }


def settings_of(config: Mapping[str, Any]) -> Settings:
    """Return the settings of a Flower run.

    Args:
        config: The run config, which contains `epsilon` and `delta`, and optionally `max-length`, `alphabet`, `unit`,
            `secure`, `symbols`, `exclude`, `seed`, `nodes`, `patience`, `output`, `ledger` and `dataset`.

    Raises:
        InputError: A value is missing or out of range.
    """
    for name in ("epsilon", "delta"):
        if name not in config:
            raise InputError(f"the run config has no {name}; set it in pyproject.toml or with flwr run --run-config.")
    seed, secure = int(config.get("seed", NO_SEED)), config.get("secure", True)
    nodes = int(config.get("nodes", LEAST_NODES))
    if type(secure) is not bool:
        raise InputError(f"`secure` must be true or false, got {type(secure).__name__}.")
    if secure and nodes < LEAST_NODES:
        raise InputError(
            f"secure aggregation does not support {nodes} nodes. `nodes` must be at least {LEAST_NODES}. Otherwise "
            "set `secure` to false, so that the server receives the sums of each node."
        )
    mechanism = HeavyHitters(**{FIELDS[name]: config[name] for name in FIELDS if name in config})
    symbols = str(config.get("symbols", "")) or None
    texts = {name: str(config.get(name, "")) for name in ("exclude", "ledger", "dataset")}
    if texts["ledger"] and seed != NO_SEED:
        raise InputError(
            "a run with a seed is not private, so it cannot be charged to a ledger. Remove `seed` or `ledger`."
        )
    return Settings(
        mechanism,
        Budget(float(config["epsilon"]), float(config["delta"])),
        seed=None if seed == NO_SEED else seed,
        nodes=nodes,
        patience=float(config.get("patience", PATIENCE)),
        output=str(config.get("output", "hitters")),
        secure=secure,
        symbols=federation.public_symbols(mechanism.alphabet, symbols) if secure else (),
        **texts,
    )


def numbers_of(ballot: Ballot) -> list[float]:
    """Return a ballot as numbers for a message."""
    return [ballot.rate, float(ballot.theta), ballot.again, ballot.further]


def ballot_of(numbers: list[float]) -> Ballot:
    """Return the ballot of a message."""
    rate, theta, again, further = numbers
    return Ballot(float(rate), int(theta), float(again), float(further))
