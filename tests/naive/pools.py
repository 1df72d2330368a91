"""Pools in dicts and loops."""


def naive_undecided(held: dict[int, list[int]], undecided: list[bool]) -> dict[int, list[int]]:
    """Return what users have left, without those who have nothing."""
    left = {user: [item for item in items if undecided[item]] for user, items in held.items()}
    return {user: items for user, items in left.items() if items}
