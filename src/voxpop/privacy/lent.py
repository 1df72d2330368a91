"""Keys of a few purposes, lent to the machines that do the work."""

from typing import final

from voxpop.errors import InternalError
from voxpop.privacy.secret import Source


@final
class Lent(Source):
    """What `Secret.lend` returns: it draws what the secret draws, for the purposes it was lent for and no others.

    A machine that weighs one length gets the keys of that length's sample and nothing of any noise. It can be pickled,
    since it must travel; it never shows a key.

    Example:
        >>> import numpy as np
        >>> from voxpop.privacy import Secret
        >>> secret, one = Secret.from_seed(1), np.ones(1, np.uint64)
        >>> bool((secret.lend("noise").draws("noise", one, 0) == secret.draws("noise", one, 0)).all())
        True
        >>> secret.lend("noise")
        Lent(noise)
    """

    __slots__ = ("_keys",)

    def __init__(self, keys: dict[str, bytes]) -> None:
        self._keys = keys

    def lend(self, *purposes: str) -> "Lent":
        """Return a source for fewer purposes."""
        return Lent({purpose: self._subkey(purpose) for purpose in purposes})

    def _subkey(self, purpose: str) -> bytes:
        if purpose not in self._keys:
            raise InternalError(f"bits for {purpose!r} are wanted where only those for {self} were lent.")
        return self._keys[purpose]

    def __repr__(self) -> str:
        return f"Lent({', '.join(sorted(self._keys))})"
