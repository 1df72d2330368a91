"""Compiled templates, kept where Python keeps the compiled modules of this folder: compiling them takes a while."""

import sys
from contextlib import suppress
from pathlib import Path

import jinja2
from jinja2.bccache import Bucket, BytecodeCache, FileSystemBytecodeCache

from voxpop.version import installed_version

KEPT = Path(__file__).parent / "__pycache__"


class KeptTemplates(FileSystemBytecodeCache):
    """Files that may be missing, old or damaged, and need not be writable: then templates are compiled again."""

    def load_bytecode(self, bucket: Bucket) -> None:
        """Take what was kept, or nothing where it cannot be read."""
        try:
            super().load_bytecode(bucket)
        except Exception:
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a template, if there is room for it: a report must not fail for want of it."""
        with suppress(OSError):
            super().dump_bytecode(bucket)


def kept_templates(folder: Path = KEPT) -> BytecodeCache | None:
    """Return where templates are kept; None where Python keeps no compiled modules either."""
    if sys.dont_write_bytecode or not folder.is_dir():
        return None
    return KeptTemplates(str(folder), f"template-{installed_version()}-{jinja2.__version__}-%s.cache")
