"""Records sorted by user within a memory bound, by Voxpop's sorter, DuckDB and polars, which run in turn as processes.

python -m benchmarks.speed.grouping records TIMES MIB
python -m benchmarks.speed.grouping texts TIMES MIB

A record contains the data that reading keeps of one post, which are a user, a row, and tokens as bytes. All three
methods read the same Parquet file of records, with users in no order, and return every record by user and row. The
second command measures the whole reading step, from posts to a corpus, with Voxpop's two sorts and with one query of
DuckDB instead.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from tools.memory import megabytes_of

from benchmarks.support.benchmark import Benchmark
from benchmarks.support.common import DATA, OUT, posts
from benchmarks.support.engines import read_engine
from voxpop.engine.local import read as spilling
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.reading.limited.memory import FIXED_MEMORY, MemoryLimit
from voxpop.reading.limited.sorter import HEAD, SHARE_OF_SORTER, Block, Sorter, UserFiles
from voxpop.reading.users import spread
from voxpop.reading.wanted import ReadOptions

BENCHMARK = Benchmark(
    __file__,
    ("grouping_records", "grouping_texts"),
    ("engine/local/read", "reading/limited"),
    minutes=3,
    commands=("records 4 1024", "texts 2 896"),
)

ROWS = 1 << 13
BY_USER = "select * from records order by key, other, row"
ENCRYPTED = {"temp_file_encryption": "true", "force_mbedtls_unsafe": "true"}
"""The second option is set because DuckDB rejects the first without OpenSSL, which is part of an extension that DuckDB
downloads.
"""
EVERY = 0.02
"""The number of seconds between two observations of a process."""
SAMPLES, SAMPLE = 20, 8
"""The number of slices, and the tokens per slice, that are searched for in the files that a killed process leaves."""
RECORDS = pa.schema(
    [("key", pa.uint64()), ("other", pa.uint64()), ("user", pa.uint64()), ("row", pa.int64()), ("tokens", pa.binary())]
)


def main() -> None:
    """Measure, print and write the results."""
    what, times, bound = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    records, texts = OUT / f"records{times}.parquet", OUT / f"posts{times}.parquet"
    if not texts.exists():
        write_inputs(records, texts, times)
    ways, path = (GROUPING, records) if what == "records" else (READING, texts)
    rows: list[list[object]] = [
        ["", "seconds", "processor seconds", "peak MiB", "temporary MiB", "others may open", "left after kill -9"]
    ]
    note = f"{times} times 500,000 posts not sorted by user; bound {bound} MiB, of which the process itself takes "
    note += (
        f"up to {FIXED_MEMORY >> 20}. Temporary: the maximum size of files, with and without names. One run, "
        "in this order."
    )
    answers = set()
    for name in ways:
        measured = watched([name, str(path), str(bound)])
        answers.add(measured.answer)
        killed = measured.temporary > 0
        left = watched([name, str(path), str(bound)], measured.temporary // 2).left if killed else ""
        rows.append([name, *measured.cells(), left])
        title = "Records by user within a bound" if what == "records" else "Reading within a bound"
        BENCHMARK.table(title, rows, f"grouping_{what}", note)  # the rows so far, in case of an interruption
    if len(answers) > 1:
        raise SystemExit("the ways differ in what came out.")


@dataclass(frozen=True)
class Measured:
    """The resources of one process in seconds and MiB, its answer, and the files left in its folder."""

    seconds: float
    processor: float
    peak: str
    temporary: int
    open_to_others: bool
    answer: str
    left: str

    def cells(self) -> list[str]:
        """Return a row of the table."""
        yes = "yes" if self.open_to_others else "no"
        return [f"{self.seconds:.0f}", f"{self.processor:.0f}", self.peak, f"{self.temporary >> 20}", yes]


def watched(arguments: list[str], until: int | None = None) -> Measured:
    """Run one method in a separate process and folder, and kill it when its files have `until` bytes."""
    begun, most, others = time.perf_counter(), 0, False
    with tempfile.TemporaryDirectory(dir=OUT) as folder:
        command = [sys.executable, "-m", "benchmarks.speed.grouping", "--run", *arguments, folder]
        env = os.environ | {"POLARS_TEMP_DIR": folder, "TMPDIR": folder}
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as process:
            while (done := os.wait4(process.pid, os.WNOHANG))[0] == 0:
                size, opened = held_files(process.pid, Path(folder))
                most, others = max(most, size), others or opened
                if until is not None and size >= until:
                    os.kill(process.pid, signal.SIGKILL)
                time.sleep(EVERY)
            process.returncode = os.waitstatus_to_exitcode(done[1])
            said = process.stdout.read().split() if process.stdout else []
        answer, peak = said if len(said) == 2 else ("", "failed" if process.returncode != -signal.SIGKILL else "")
        files = [each for each in Path(folder).rglob("*") if each.is_file()]
        left = f"{sum(each.stat().st_size for each in files) >> 20} MiB" if files else "nothing"
        if files:
            left += ", readable" if any(is_readable(each) for each in files) else ", no tokens found"
    used = done[2].ru_utime + done[2].ru_stime
    return Measured(time.perf_counter() - begun, used, peak, most, others, answer, left)


def is_readable(file: Path) -> bool:
    """Return whether a file contains tokens of the input in readable form."""
    tokens, data = np.asarray(posts().tokens), file.read_bytes()
    places = np.linspace(0, tokens.size - SAMPLE, SAMPLES).astype(int)
    return any(tokens[place : place + SAMPLE].tobytes() in data for place in places)


def held_files(process: int, folder: Path) -> tuple[int, bool]:
    """Return the bytes on disk of a process in a folder, and whether other users may open any of its files."""
    found: dict[tuple[int, int], os.stat_result] = {}
    with contextlib.suppress(OSError):
        for link in Path(f"/proc/{process}/fd").iterdir():
            with contextlib.suppress(OSError):
                if str(folder) in os.readlink(link):
                    state = link.stat()
                    found[state.st_dev, state.st_ino] = state
    named = [each.stat() for each in folder.rglob("*") if each.is_file()]
    found |= {(state.st_dev, state.st_ino): state for state in named}
    return sum(512 * state.st_blocks for state in found.values()), any(state.st_mode & 0o077 for state in named)


def write_inputs(records: Path, texts: Path, times: int) -> None:
    """Write posts with users in no order, and the same posts as records."""
    corpus, rng = posts(), np.random.default_rng(0)
    every = pl.read_parquet(DATA / "reddit_posts.parquet").get_column("text")
    schema = pa.schema([("user", pa.int64()), ("text", pa.large_string())])
    with pq.ParquetWriter(records, RECORDS) as to_records, pq.ParquetWriter(texts, schema) as to_texts:
        for time_round in range(times):
            who = rng.integers(0, 250_000 * times, len(every))
            to_texts.write_table(pa.table([who, every.to_arrow()], schema), row_group_size=50_000)
            users = corpus.user_key.size
            keys = spread(rng.integers(0, 250_000 * times, users).astype(np.uint64))
            row = np.arange(users) + time_round * users
            starts = (4 * corpus.user_start).astype(np.int32)
            held = pa.BinaryArray.from_buffers(
                pa.binary(), users, [None, pa.py_buffer(starts), pa.py_buffer(np.ascontiguousarray(corpus.tokens))]
            )
            nothing = np.zeros(users, np.uint64)
            to_records.write_table(pa.table([keys, nothing, keys, row, held], RECORDS), row_group_size=50_000)


def batches_of(path: Path) -> Iterator[pa.RecordBatch]:
    """Yield records from a file, a few thousand at a time. Only a small part of the file is in memory."""
    yield from pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 18).iter_batches(ROWS)


def block_of(batch: pa.RecordBatch) -> Block:
    """Return records in the format of the sorter."""
    heads = np.empty(batch.num_rows, HEAD)
    for name in ("key", "other", "user", "row"):
        heads[name] = batch.column(name).to_numpy(zero_copy_only=False)
    held = batch.column("tokens")
    starts = np.frombuffer(held.buffers()[1], np.int32)[held.offset : held.offset + len(held) + 1]
    heads["size"] = np.diff(starts) // 4
    data = held.buffers()[2]
    return heads, np.frombuffer(data, np.int32)[starts[0] // 4 : starts[-1] // 4] if data else np.empty(0, np.int32)


def batch_of(block: Block) -> pa.RecordBatch:
    """Return records in the format of databases."""
    heads, tokens = block
    starts = np.concatenate([[0], np.cumsum(4 * heads["size"])]).astype(np.int32)
    buffers = [None, pa.py_buffer(starts), pa.py_buffer(np.ascontiguousarray(tokens))]
    columns = [pa.array(np.ascontiguousarray(heads[name])) for name in ("key", "other", "user", "row")]
    return pa.record_batch([*columns, pa.BinaryArray.from_buffers(pa.binary(), heads.size, buffers)], RECORDS)


def by_sorter(path: Path, limit: MemoryLimit) -> Iterator[Block]:
    """Sort records with Voxpop's sorter."""
    groups = pq.ParquetFile(path).metadata
    expected = sum(groups.row_group(each).total_byte_size for each in range(groups.num_row_groups))
    sorter = Sorter(limit, limit.room // SHARE_OF_SORTER, expected)
    for batch in batches_of(path):
        sorter.add(*block_of(batch))
    yield from sorter.blocks()


def by_duckdb(path: Path, limit: MemoryLimit) -> Iterator[Block]:
    """Sort records with DuckDB, with encrypted temporary files."""
    yield from _asked(batches_of(path), limit, BY_USER)


def by_readable_duckdb(path: Path, limit: MemoryLimit) -> Iterator[Block]:
    """Sort records with DuckDB, without encryption."""
    yield from _asked(batches_of(path), limit, BY_USER, encrypted=False)


def by_polars(path: Path, _: MemoryLimit) -> Iterator[Block]:
    """Sort records with polars' streaming engine, which reads the folder from its environment."""
    ordered = pl.scan_parquet(path).sort("key", "other", "row")
    for frame in ordered.collect_batches(chunk_size=ROWS, maintain_order=True, engine="streaming"):
        for batch in frame.to_arrow().cast(RECORDS).to_batches():
            yield block_of(batch)


def _asked(
    batches: Iterator[pa.RecordBatch], limit: MemoryLimit, query: str, *, encrypted: bool = True
) -> Iterator[Block]:
    """Yield the result of a query about records from a database in memory, within the room of the limit."""
    import duckdb

    database = duckdb.connect(
        config={
            "memory_limit": f"{limit.room >> 20}MiB",
            "temp_directory": str(limit.folder),
            **(ENCRYPTED if encrypted else {}),
            "threads": "2",
            "preserve_insertion_order": "false",
        }
    )
    database.register("records", pa.RecordBatchReader.from_batches(RECORDS, batches))
    for batch in database.sql(query).to_arrow_reader(ROWS):
        yield block_of(batch)


def merged_by_duckdb(spill: Any) -> LocalCorpus:
    """Replace `merged` of spilling by one query that groups the records of each user."""
    limit, vocabulary = spill._limit, spill._words.merged()
    files = UserFiles(limit)
    batches = (batch_of(block) for block in _numbered(spill._named_blocks(limit.room // SHARE_OF_SORTER // 4)))
    for heads, tokens in _asked(batches, limit, BY_USER):
        heads["row"] = 0
        files.append(heads, tokens)
    return LocalCorpus(*files.mapped(), vocabulary, spill._kind, limit=limit)


def _numbered(blocks: Iterator[Block]) -> Iterator[Block]:
    """Yield records with their number as row, which keeps each user's records in order."""
    place = 0
    for heads, tokens in blocks:
        heads["row"] = np.arange(place, place + heads.size)
        place += heads.size
        yield heads, tokens


def of_records(way: str, path: Path, limit: MemoryLimit) -> tuple[int, int]:
    """Sort the records of a file, and return a number that depends on their order, and the peak memory."""
    total = place = 0
    for heads, tokens in GROUPING[way](path, limit):
        total += int((heads["row"] * np.arange(place, place + heads.size)).sum()) + int(tokens.sum(dtype=np.int64))
        place += heads.size
    return total, megabytes_of("VmHWM")


def of_texts(way: str, path: Path, limit: MemoryLimit) -> tuple[int, int]:
    """Read a file of texts, and return a number that depends on the whole corpus, and the peak memory of reading."""
    READING[way]()
    options = ReadOptions() if way == IN_MEMORY else ReadOptions(memory=limit.total, work_folder=limit.folder)
    corpus = read_engine(path, user="user", text="text", options=options)
    peak, every, starts = megabytes_of("VmHWM"), np.asarray(corpus.tokens), np.asarray(corpus.user_start)
    # Places are counted among the tokens of a user, because methods may differ in the order of users.
    places = np.arange(every.size) - np.repeat(starts[:-1], np.diff(starts))
    return int((every.astype(np.int64) * (places % 1009)).sum()), peak


def run(way: str, path: str, bound: str, folder: str) -> None:
    """Run one method, and print its answer and the peak memory."""
    limit = MemoryLimit.of(int(bound) << 20, folder)
    print(*(of_records if way in GROUPING else of_texts)(way, Path(path), limit))


def with_duckdb() -> None:
    """Make the reader merge with DuckDB."""
    spilling._Spill.merged = merged_by_duckdb  # type: ignore[method-assign]


IN_MEMORY = "reading, no bound"
GROUPING: dict[str, Callable[[Path, MemoryLimit], Iterator[Block]]] = {
    "our sorter": by_sorter,
    "DuckDB": by_readable_duckdb,
    "DuckDB, encrypted": by_duckdb,
    "polars, streaming": by_polars,
}
READING: dict[str, Callable[[], None]] = {
    IN_MEMORY: lambda: None,
    "reading, our sorter": lambda: None,
    "reading, DuckDB, encrypted": with_duckdb,
}

if __name__ == "__main__":
    run(*sys.argv[2:]) if sys.argv[1:2] == ["--run"] else main()
