"""Spark partitions without Spark: the tasks of the engine, run one after the other in this process."""

import numpy as np
import pyarrow as pa

from corpora import corpus_of
from voxpop.spark import tasks
from voxpop.spark.ballots import lent_ballot
from voxpop.spark.frames import packed, pieces
from voxpop.spark.levels import ALL_LENGTHS
from voxpop.spark.remaining import public_words


def states_of(users, keys, places):
    """Return one state per place, the users of each placed there in order, every place with a vocabulary of its own."""
    states = []
    for place in sorted(set(places)):
        mine = [number for number, where in enumerate(places) if where == place]
        corpus = corpus_of([users[number] for number in mine], [keys[number] for number in mine])
        states.append(list(pieces(tasks._arrays_of(corpus))))
    return states


def beside(state, arrays):
    """Return a state with public arrays beside its first row, as a broadcast leaves them."""
    content = packed(arrays)
    return [
        batch.append_column("public", pa.array([content if batch["piece"][0].as_py() == 0 else None], pa.binary()))
        for batch in state
    ]


def summed(parts, words):
    """Return weight by name over all places, added up as Spark does: high and low parts each for itself."""
    high, low = {}, {}
    for part in parts:
        for batch in part:
            for row in batch.to_pylist():
                name = row["name"].decode() if words else row["name"]
                high[name] = high.get(name, 0) + row["high"]
                low[name] = low.get(name, 0) + row["low"]
    names = list(high)
    columns = {"high": [high[name] for name in names], "low": [low[name] for name in names]}
    batch = pa.RecordBatch.from_pydict({key: pa.array(column, pa.int64()) for key, column in columns.items()})
    return dict(zip(names, tasks._weights_of(batch).tolist(), strict=True)) if names else {}


class PlacedLevels:
    """`SparkLevels`, with lists of batches for DataFrames."""

    def __init__(self, states):
        self.states, self.length, self.size, self.candidates, self.order, self.words = states, 1, None, None, None, None

    def weigh(self, shares, limit, secret, occasion):
        """Return weight by name: words at length 1."""
        ballot = lent_ballot(shares, limit, secret, occasion, order=ALL_LENGTHS)
        if self.size is None:
            self.order = secret.lend(f"order/{ALL_LENGTHS}") if shares.sequential else None
            return summed((tasks.weigh_words(state, ballot=ballot) for state in self.states), words=True)
        if self.candidates is None:
            settings = {"ballot": ballot, "length": self.length, "size": self.size}
            return summed((tasks.weigh_kept(state, **settings) for state in self.states), words=False)
        settings = {"ballot": ballot, "length": self.length - 1, "single": self.candidates.single}
        states = (beside(state, self.public()) for state in self.states)
        return summed((tasks.weigh_next(state, **settings) for state in states), words=False)

    def keep(self, released):
        """Keep words (a list of strings) or names (rising numbers)."""
        if self.candidates is None:
            public = public_words(pa.array(released, pa.large_string()))
            self.states = [list(tasks.keep_words(beside(s, public), order=self.order)) for s in self.states]
        else:
            settings = {"length": self.length - 1, "single": self.candidates.single}
            public = {**self.public(), "names": np.asarray(released, np.int64)}
            self.states = [list(tasks.keep_next(beside(s, public), **settings)) for s in self.states]
        self.size, self.candidates = len(released), None

    def extend(self, candidates):
        """Go on to the next length."""
        self.candidates, self.length = candidates, self.length + 1

    def public(self):
        return {"need": self.candidates.need, "estimates": self.candidates.estimates}
