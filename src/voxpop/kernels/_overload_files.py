"""Machine code of kernels in files that never change, so that any number of processes may read and write them.

numba's own cache replaces an index before the file that the index names, and two writers may give two signatures the
same file. Here there is no index: the name of a file says what is in it (a kernel and the types it is called with; the
folder's name says sources, compiler and processor), and a file gets its name when it is whole.
"""

import pickle
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

_rebuild: Callable[..., Any] = CompileResult._rebuild
_dumps: Callable[..., bytes] = dumps
DIGEST = 16
"""Bytes of the digest that a file begins with."""


class OverloadFiles:
    """What numba asks of the cache of one kernel: `load_overload` and `save_overload`."""

    def __init__(self, kernel: Callable[..., Any], folder: str) -> None:
        """Keep the code of a kernel in a folder that nobody else may write into, since code is read from it."""
        self._name = f"{kernel.__module__.rpartition('.')[2]}.{kernel.__qualname__}"
        self._folder = Path(folder)
        self.cache_path = folder

    def path_of(self, types: Any) -> Path:
        """Return where the code for arguments of these types is."""
        return self._folder / f"{self._name}-{blake2b(str(types).encode(), digest_size=12).hexdigest()}"

    def load_overload(self, types: Any, target: Any) -> Any:
        """Return compiled code, or None where it is not there or damaged: then it is compiled."""
        with suppress(Exception):
            content = self.path_of(types).read_bytes()
            if _digest(content[DIGEST:]) == content[:DIGEST]:
                target.refresh()
                return _rebuild(target, *pickle.loads(content[DIGEST:]))
        return None

    def save_overload(self, types: Any, code: Any) -> None:
        """Write code aside, then give the file its name; where that cannot be, the next process compiles again."""
        with suppress(Exception):
            if code.library.has_dynamic_globals or code.lifted:
                return
            content: bytes = _dumps(code._reduce())
            _write_whole(self.path_of(types), _digest(content) + content)

    def enable(self) -> None:
        """Be there always."""

    def disable(self) -> None:
        """Be there always."""

    def flush(self) -> None:
        """Keep what is there: it never changes."""


def _write_whole(path: Path, content: bytes) -> None:
    """Write a file under another name, then give it its own; where that cannot be, leave nothing."""
    with NamedTemporaryFile(dir=path.parent, prefix=f"{path.name}.", delete=False) as unfinished:
        aside = Path(unfinished.name)
        try:
            unfinished.write(content)
            unfinished.flush()
            aside.replace(path)
        except OSError:
            aside.unlink(missing_ok=True)


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=DIGEST).digest()
