"""Pools in dicts and loops."""


def naive_undecided(held: dict[int, list[int]], states: list[int]) -> dict[int, tuple[list[int], int]]:
    """Return what users have left and how many of their items were dropped, without those who have nothing left."""
    left = {
        user: ([item for item in items if states[item] > 1], sum(states[item] == 1 for item in items))
        for user, items in held.items()
    }
    return {user: mine for user, mine in left.items() if mine[0]}
