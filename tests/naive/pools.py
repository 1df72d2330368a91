"""Reference implementation of pools with dicts and loops."""


def naive_undecided(held: dict[int, list[int]], states: list[int]) -> dict[int, tuple[list[int], int]]:
    """Return, for each user with undecided items, these items and the user's number of dropped items."""
    left = {
        user: ([item for item in items if states[item] > 1], sum(states[item] == 1 for item in items))
        for user, items in held.items()
    }
    return {user: mine for user, mine in left.items() if mine[0]}
