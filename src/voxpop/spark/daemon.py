"""The process that workers are forked from: it compiles the kernels of every length once, for all of them.

Spark starts it as `python -m voxpop.spark.daemon` where `spark.python.daemon.module` names it, which `start_session`
does on this machine. Compiled code reaches workers by fork, as pages of memory: they write no file, and read none; what
the daemon compiled is kept for the next run (`machine_code.py`). Nothing here may start a thread, since locks that a
thread holds stay locked in a fork: numpy and numba are imported, and neither pyarrow nor polars.
"""

import gc
import os
from contextlib import suppress
from importlib import import_module
from typing import Any

from voxpop.spark import machine_code

IDS, WIDE, KEYS, MASK = "int32[::1]", "int64[::1]", "uint64[::1]", "uint8[::1]"
NUMBER, FLAG = "int64", "boolean"
KERNELS = {
    "bound.gather_distinct": (IDS, WIDE, WIDE, MASK, IDS, NUMBER),
    "bound.pairs_over_limit": (IDS, WIDE, KEYS, NUMBER),
    "bound.keep_smallest": (IDS, WIDE, KEYS, NUMBER),
    "group.rename": (IDS, IDS, IDS),
    "group.is_rising": (IDS,),
    "group.sizes_by_user": (IDS, WIDE, WIDE),
    "group.mark_used": (IDS, MASK),
    "pairs.number_pairs": (IDS, IDS, NUMBER, NUMBER, NUMBER, WIDE, WIDE, NUMBER),
    "pairs.merge_names": (WIDE, WIDE, NUMBER, IDS),
    "pairs.find_names": (WIDE, WIDE),
    "pairs.table_of": (WIDE,),
    "pairs.belongs": (WIDE, WIDE, WIDE, WIDE),
    "pairs.rename_range": (IDS, NUMBER, NUMBER, IDS),
    "pairs.rename_in_runs": (IDS, WIDE, NUMBER, NUMBER, IDS, WIDE),
    "pairs.move_down": (IDS, NUMBER, NUMBER, NUMBER),
    "pairs.rename_users": (IDS, WIDE, WIDE, IDS, IDS, NUMBER),
    "pools.keep_undecided": (IDS, WIDE, KEYS, MASK),
    "weigh.add_even": (WIDE, IDS, WIDE, WIDE),
    "runs.candidate_runs": (IDS, WIDE, MASK, FLAG),
    "weigh.add_even_within": (WIDE, IDS, WIDE, WIDE, WIDE),
    "weigh.l2_descent": (WIDE, IDS, WIDE, NUMBER, NUMBER, WIDE),
}
"""What every extraction of grams runs, with the types it is called with."""


def kernel_of(name: str) -> Any:
    """Return a kernel by its file and name."""
    file, kernel = name.split(".")
    return getattr(import_module(f"voxpop.kernels.{file}"), kernel)


def compile_kernels() -> None:
    """Compile what every extraction runs, or read it; without numba's compiler (NUMBA_DISABLE_JIT) nothing."""
    for name, types in KERNELS.items():
        kernel = kernel_of(name)
        if hasattr(kernel, "compile"):
            kernel.compile(f"({', '.join(types)},)")


def compile_once() -> None:
    """Compile, or read what an earlier process has compiled."""
    os.environ["VOXPOP_JIT_CACHE"] = "0"
    machine_code.keep()
    compile_kernels()


def main() -> None:
    """Compile, and then be the daemon of Spark."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # or numpy starts threads when it is imported
    with suppress(Exception):  # workers compile what they need then, and a session must not end for it
        compile_once()
    for name in ("scipy.special", "cryptography.hazmat.primitives.ciphers"):
        import_module(name)
    gc.freeze()  # workers need not look through it, nor copy its pages
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
