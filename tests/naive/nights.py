"""Reference implementation of a series with loops and dicts, with the nights of docs/privacy/series.md."""

import numpy as np

from naive.weighing import word_name


class Nights:
    """The whole state of a series, in dicts by user key and word."""

    def __init__(self, plan, secret, known=()):
        self.plan, self.secret = plan, secret
        self.pools, self.left = {}, {}
        self.scores, self.decided, self.released, self.levels = ({word: 0 for word in known} for _ in range(4))

    def noise(self, night, word):
        """Return the noise of a night for a word, in cells."""
        from voxpop.privacy.sampling import noisy_cells

        content = np.frombuffer(word.encode(), np.uint8)
        names = self.secret.text_draws("words", content, np.array([0, content.size]))
        draws = self.secret.draws(f"noise/night {night}", names[:, 0], names[:, 1])
        proof = self.plan.proof
        return int(noisy_cells(np.zeros(1, np.int64), proof.sigmas[night - 1], 1 << proof.bits, proof.cell, draws)[0])

    def run(self, rows, night):
        """Run one night. `rows` maps each user key to a list of words, or is None if the night has no run."""
        plan = self.plan
        for user, words in (rows or {}).items():
            mine, fresh = self.pools.setdefault(user, {}), []
            self.left.setdefault(user, 2**40)
            for word in dict.fromkeys(words):
                if word not in mine and not self.decided.get(word):
                    fresh.append(word)
            room = plan.proof.pool - len(mine) if self.left[user] else 0
            if len(fresh) > room:
                fresh = sorted(fresh, key=lambda word: self.draw("sample/series", user, word_name(self.secret, word)))
            for word in fresh[: max(room, 0)]:
                mine[word] = night
                if word not in self.scores:
                    self.scores[word] = sum(plan.proof.factors[r - 1] * self.noise(r, word) for r in range(1, night))
                    self.decided[word] = self.released[word] = 0
        weights = {} if rows is None else self.weights(night)
        for word in self.scores:
            cells = weights.get(word, 0.0) * 2**plan.proof.bits / plan.proof.cell + self.noise(night, word)
            self.scores[word] += plan.proof.factors[night - 1] * cells
            out = word not in self.levels and self.scores[word] >= plan.proof.thresholds[night - 1]
            if out and not self.decided[word]:
                self.decided[word] = self.released[word] = night
        if plan.proof.known is not None:
            self.settle(night)

    def settle(self, night):
        """Increase the levels of listed items, and freeze and release items with sufficient levels."""
        known = self.plan.proof.known
        for word, before in self.levels.items():
            reached = [
                number
                for number in range(1, len(known.tails) + 1)
                if self.scores[word] >= known.lowest[night - 1] + (number - 1) * known.steps[night - 1]
            ]
            self.levels[word] = max([before, *reached])
        unlisted = sum(night > 0 for word, night in self.released.items() if word not in self.levels)
        frozen = released = None
        for number, tail in reversed([*enumerate(known.tails, start=1)]):
            mine = sum(level >= number for level in self.levels.values())
            if known.listed.size * tail <= known.share * unlisted:
                frozen = number
            if known.listed.size * tail <= known.share * (unlisted + mine):
                released = number
        for word, level in self.levels.items():
            if not self.decided[word] and level >= (frozen or len(known.tails)):
                self.decided[word] = night
            if released and not self.released[word] and level >= released:
                self.released[word] = night

    def weights(self, night):
        """Return the weight of each word. Users give weight in the order of their keyed hashes."""
        from voxpop.privacy.certificate import night_charge

        plan, charge = self.plan, night_charge(self.plan.proof, night)
        unit, sets = 1.0, []
        order = sorted(self.pools, key=lambda user: (self.draw("order/series", user, 0), user))
        rests = {
            word
            for word, score in self.scores.items()
            if night > 1 and score < (plan.listed_rests if word in self.levels else plan.rests)[night - 2]
        }
        for user in order:
            tried = night - plan.tried + 1
            mine = [w for w, n in self.pools[user].items() if not self.decided[w] and (w not in rests or n >= tried)]
            if not mine:
                continue
            paid = min(self.left[user] * charge.rates[0] >> 20, 16 * charge.cost, self.left[user])
            self.left[user] -= paid
            sets.append((mine, int(charge.bounds(np.array([paid]))[0]) / 2**20))
        cutoff, total = plan.proof.cutoffs[night - 1] / 2**plan.proof.bits, {}
        for mine, bound in sets:
            if bound <= 0:
                continue
            # l2-descent with a bound equals l2-descent with bound 1 on weights in units of the bound.
            scaled = {word: total.get(word, 0.0) / bound for word in mine}
            gaps = {word: cutoff / bound - scaled[word] for word in mine}
            length = max(unit, sum(gap * gap for gap in gaps.values()) ** 0.5)
            for word in mine:
                total[word] = total.get(word, 0.0) + bound * gaps[word] / length
        return total

    def draw(self, purpose, user, name):
        """Return the first 64-bit word of a draw."""
        return int(self.secret.draws(purpose, np.array([user], np.uint64), np.array([name], np.uint64))[0, 0])
