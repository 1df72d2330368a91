"""The decorator for functions that proofs refer to.

A test compares the code of these functions with the stamps of the proof pages.
"""

from collections.abc import Callable
from typing import TypeVar

Code = TypeVar("Code")


def proved(section: str) -> Callable[[Code], Code]:
    """Mark a function that a proof refers to.

    The docstring of the function quotes the corresponding sentence of the proof after "Proof:".

    Args:
        section: The page in docs/privacy and the section, such as "adaptive.md#novel-items".
    """
    return lambda code: code
