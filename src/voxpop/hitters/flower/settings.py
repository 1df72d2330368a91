"""What a run is configured with, on the server and on every node alike: each makes the plan for itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, final

from voxpop.errors import InputError, UnsoundError
from voxpop.hitters.heavy_hitters import HeavyHitters
from voxpop.hitters.plan import HittersPlan
from voxpop.privacy.budget import Budget
from voxpop.privacy.secret import Secret

FIELDS = {"max-length": "max_length", "unit": "unit", "words": "words", "alphabet": "alphabet"}
NO_SEED = -1


@final
@dataclass(frozen=True, slots=True)
class Settings:
    """One run.

    Attributes:
        plan: the numbers that run.
        seed: of a run that is NOT private, or None.
        nodes: how many nodes to wait for before the first round.
        patience: seconds to wait for them, and for the answers of a round.
        output: where the server saves the release.
    """

    plan: HittersPlan
    seed: int | None
    nodes: int
    patience: float
    output: str

    def secret(self) -> Secret:
        """Return the secret of a node for one round: its own and fresh, unless the run has a seed."""
        return Secret.of(self.seed)


def settings_of(config: Mapping[str, Any]) -> Settings:
    """Return the settings of a Flower run.

    Args:
        config: its run config: epsilon and delta, and if wanted max-length, unit, words, alphabet, seed, nodes,
            patience and output.

    Raises:
        InputError: where something is missing or out of range.
    """
    for name in ("epsilon", "delta"):
        if name not in config:
            raise InputError(f"the run config has no {name}; set it in pyproject.toml or with flwr run --run-config.")
    if config.get("sampling", "bernoulli") != "bernoulli":
        raise UnsoundError("batches of fixed size have no proof and are not run on devices; leave `sampling` out.")
    seed = int(config.get("seed", NO_SEED))
    return Settings(
        _plan(
            tuple((FIELDS[name], config[name]) for name in FIELDS if name in config),
            float(config["epsilon"]),
            float(config["delta"]),
        ),
        None if seed == NO_SEED else seed,
        int(config.get("nodes", 1)),
        float(config.get("patience", 60.0)),
        str(config.get("output", "hitters")),
    )


@lru_cache(maxsize=8)
def _plan(fields: tuple[tuple[str, Any], ...], epsilon: float, delta: float) -> HittersPlan:
    return HeavyHitters(**dict(fields)).plan(Budget(epsilon, delta))
