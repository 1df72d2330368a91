"""Reference implementation of typed keys and cover in plain Python, with rows as dicts and keys as tuples."""

from collections import Counter
from fractions import Fraction

from naive.corpus import words as words_of


def keys_of_row(row, columns, texts, joint):
    """Return the keys of a row as pairs (names of columns, values). Repeated words give repeated keys."""
    keys = []
    for name in columns:
        if row[name] is None:
            continue
        values = words_of(row[name]) if name in texts else [row[name]]
        keys += [((name,), (value,)) for value in values]
    return keys + [
        (names, tuple(row[each] for each in names)) for names in joint if None not in [row[n] for n in names]
    ]


def cover_of(users, columns, released, texts=()):
    """Return, for each column, the sums over users of the shares of rows with a released value and of other rows."""
    sums = {name: [Fraction(0), Fraction(0)] for name in columns}
    for rows in users.values():
        keys = [key for row in rows for key in keys_of_row(row, columns, texts, ())]
        whole = Counter(names[0] for names, _ in keys)
        for names, values in keys:
            sums[names[0]][(names, values) not in released] += Fraction(1, whole[names[0]])
    return sums
