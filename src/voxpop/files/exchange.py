"""Let two folders change places in one step, where the operating system can."""

import ctypes
import errno
import os
import sys
from pathlib import Path

AT_FDCWD = -100
RENAME_EXCHANGE = 2
UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP})


def exchange(first: Path, second: Path) -> bool:
    """Let two folders of one file system change places, so that each name always names one of them.

    Args:
        first: an existing path.
        second: another one.

    Returns:
        True if they did, False if this system or file system cannot do it.

    Raises:
        OSError: if it can, and failed.
    """
    if not sys.platform.startswith("linux"):
        return False
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    ctypes.set_errno(0)
    if rename(AT_FDCWD, os.fsencode(first), AT_FDCWD, os.fsencode(second), RENAME_EXCHANGE) == 0:
        return True
    failure = ctypes.get_errno()
    if failure in UNSUPPORTED:
        return False
    raise OSError(failure, os.strerror(failure), str(first), None, str(second))
