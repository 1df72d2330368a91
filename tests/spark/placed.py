"""Partitions without Spark. The tasks of the engine run one after another in this process."""

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from support.corpora import corpus_of
from voxpop.engine.spark import frames as messages
from voxpop.engine.spark import histogram, pools, tasks
from voxpop.engine.spark import pools as pool_tasks
from voxpop.engine.spark.frames import packed, pieces, word_arrays
from voxpop.engine.spark.walks import ALL_LENGTHS, restricted_weighing


def states_of(users, keys, places):
    """Return one state per place, with the users of each place in order and a separate vocabulary."""
    states = []
    for place in sorted(set(places)):
        mine = [number for number, where in enumerate(places) if where == place]
        corpus = corpus_of([users[number] for number in mine], [keys[number] for number in mine])
        states.append(list(pieces(tasks._arrays_of(corpus))))
    return states


def beside(state, arrays):
    """Return a state with public arrays in its first row, like a state after a broadcast."""
    content = packed(arrays)
    return [
        batch.append_column(
            "public", pa.array([None if each else content for each in batch["piece"].to_pylist()], pa.binary())
        )
        for batch in state
    ]


def summed(parts, words):
    """Return the total weight of each name over all places. As on Spark, high and low parts have separate sums."""
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
    return dict(zip(names, histogram._weights_of(batch).tolist(), strict=True)) if names else {}


class PlacedLevels:
    """A variant of `SparkLengthWalk` that uses lists of batches instead of DataFrames."""

    def __init__(self, states):
        self.states, self.length, self.size, self.candidates, self.order, self.words = states, 1, None, None, None, None

    def weigh(self, shares, limit, secret, pass_name):
        """Return the weight of each name. At length 1, names are words."""
        weighing = restricted_weighing(shares, limit, secret, pass_name, order=ALL_LENGTHS)
        if self.size is None:
            self.order = secret.restrict(f"order/{ALL_LENGTHS}") if shares.sequential else None
            return summed(
                (tasks.weigh_items(state, weighing=weighing, order=ALL_LENGTHS) for state in self.states), words=True
            )
        states = (beside(state, self.public()) for state in self.states)
        parts = (tasks.weigh_grams(state, weighing=weighing, since=self.since()) for state in states)
        return summed(parts, words=False)

    def keep(self, released):
        """Keep words (a list of strings) or names (increasing numbers)."""
        if self.candidates is None:
            public = word_arrays(pa.array(released, pa.large_string()))
            self.states = [list(tasks.keep_words(beside(s, public), order=self.order)) for s in self.states]
        else:
            public = {**self.public(), "names": np.asarray(released, np.int64)}
            self.states = [list(tasks.keep_next(beside(s, public), since=self.since())) for s in self.states]
        self.size, self.candidates = len(released), None

    def extend(self, candidates):
        """Continue with the next length."""
        self.candidates, self.length = candidates, self.length + 1

    def since(self):
        between = self.candidates is not None
        return tasks.Since(self.length - between, self.size, between and self.candidates.single)

    def public(self):
        if self.candidates is None:
            return {}
        return {"need": self.candidates.need, "estimates": self.candidates.estimates}


class PlacedPools:
    """A variant of `SparkPools` that uses tables of messages, grouped by place, instead of DataFrames."""

    def __init__(self, states, secret, reducers=pools.MOST_REDUCERS):
        self.states, self.secret, self.news = states, secret, messages.STATE_SCHEMA.empty_table()
        self.reducers = min(len(states), reducers)

    def draw(self, released, size, pass_name, listed=None):
        """Draw a pool of items for every user, without released words and optionally with a public list."""
        settings = {"size": size, "pass_name": pass_name, "secret": self.secret}
        settings |= {"places": len(self.states), "reducers": self.reducers}
        public = word_arrays(pa.array([*released, *(listed or [])], pa.large_string()))
        public |= {"released": np.array([len(released)]), "listed": np.array([listed is not None])}
        drawn = []
        for number, state in enumerate(self.states):
            numbered = [
                batch.set_column(1, "sender", pa.array([number] * batch.num_rows, pa.int32())) for batch in state
            ]
            drawn += pool_tasks.draw_pools(beside(numbered, public), **settings)
        self.drawn, told = drawn, pa.Table.from_batches(drawn, messages.STATE_SCHEMA)
        of_users = pc.is_in(told["name"], pa.array(pools.OF_USERS))
        self.users = grouped(told.filter(of_users))
        self.items = {
            place: pool_tasks.register(rows) for place, rows in grouped(told.filter(pc.invert(of_users))).items()
        }

    def advance(self, shares, step, pass_name):
        """Run a round."""
        given = {"shares": shares, "secret": self.secret, "pass_name": pass_name, "reducers": self.reducers}
        weigh = partial(pool_tasks.weigh_pools, **given)
        advance = partial(pool_tasks.advance_items, step=step, places=len(self.states))
        self.news = met(self.items, met(self.users, self.news, weigh), advance)

    def released(self):
        """Return the words that the rounds released, in order, and the levels of listed words."""
        mine = self.news.filter(pc.is_in(self.news["name"], pa.array(pools.OF_ITEMS)))
        homes = messages.spread_rows(self.reducers)[np.asarray(mine["sender"])]
        states = mine.set_column(0, "place", pa.array(homes, pa.int32()))
        if not self.items:
            return [], {}
        found = met(self.items, states, pool_tasks.released_of_reducer).to_pylist()
        levels = {each["name"].decode(): each["level"] for each in found if each["level"]}
        return sorted(each["name"].decode() for each in found if not each["level"]), levels


def grouped(table):
    """Return the rows of each place."""
    return {place: table.filter(pc.equal(table["place"], place)) for place in set(table["place"].to_pylist())}


def met(there, news, work):
    """Run a task on the rows of each place and its messages. As on Spark, empty groups have no columns."""
    sent, nothing = grouped(news), pa.table({})
    found = [work(there.get(place, nothing), sent.get(place, nothing)) for place in sorted({*there, *sent})]
    return pa.concat_tables(found) if found else messages.STATE_SCHEMA.empty_table()
