"""Run <-> disk: one directory a run, written once and never changed again.

    run.json            the header: schema first, then what was run, on what, and (when the loop has ended) how it ended
    events.spans.arrow  the trainer's and the device's spans   (Arrow IPC stream, a record batch a thousand rows)
    events.made.arrow   what each batch cost where it was made (the same, packed when the loop has ended)
    events.items.arrow  what single samples cost, events.started.arrow how workers came to be (the same)
    events.counts.arrow readings of the system, twice a second
    stacks.folded       of a traced script: what it was at when it was looked at, a line a stack
    making/             until then: one file a worker or thread, appended to a batch at a time, of a script the latest spans

Everything but run.json is append-only: after a crash, what stands before the cut is read and the run counts as incomplete.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from .comparison import Comparison
from .errors import UserError
from .events import Count, Item, Made, Row, Started
from .hot_lines import Stack
from .intervals import overlap
from .probe import items, pieces, records, starts
from .run import SCHEMA, Event, Header, Outcome, Run, Table, columns, table
from .sampling import MOST_BLOCKS, Sampling

HEADER = "run.json"
SPANS = "events.spans.arrow"
MADE = "events.made.arrow"
ITEMS = "events.items.arrow"
STARTED = "events.started.arrow"
COUNTS = "events.counts.arrow"
FILES: Mapping[str, Event] = {SPANS: Row, MADE: Made, ITEMS: Item, STARTED: Started, COUNTS: Count}
"""Older runs have the first two."""
MAKING = "making"
LOOSE_SPANS = "spans.bin"
"""In there: of a traced script the latest spans, which are no whole block yet."""
STACKS = "stacks.folded"
SUMMARY = "summary.json"
MOST_WORKERS = 100_000

UPGRADES: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""From schema n to n + 1: a function of the header's dict. The first one comes with schema 2."""


def pack(kind: Event, rows: Sequence[Sequence[int]] | Table) -> pa.RecordBatch:
    """Rows as columns."""
    whole = np.ascontiguousarray(table(kind, rows).T)
    return pa.record_batch([pa.array(column) for column in whole], names=list(kind._fields))


class RunWriter:
    """Makes a run directory and appends to it. Raises UserError if it holds anything; OSError where the disk refuses."""

    def __init__(self, folder: Path, most_blocks: int = MOST_BLOCKS) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=folder.is_dir() and not any(folder.iterdir()))
        except FileExistsError:
            raise UserError(
                f"{folder} exists, and a run never overwrites another: choose another --out, or remove it"
            ) from None
        self.folder = folder
        self.making = folder / MAKING
        self.making.mkdir()
        self._header: Header | None = None
        self._sampling = Sampling(most_blocks)
        self._spans = _Stream(folder / SPANS, Row)
        self._counts = _Stream(folder / COUNTS, Count)
        self._made: _Stream | None = None

    def begin(self, header: Header) -> None:
        self._header = header
        self._write_header()

    def note(self, **changes: Any) -> None:
        """Replaces entries of the header."""
        assert self._header is not None
        self._header = replace(self._header, **changes)
        self._write_header()

    def write(self, rows: Sequence[tuple[int, ...]]) -> None:
        """Appends a block of spans, or what is kept of it. Costs a copy into the page cache; waits for no disk."""
        for kept in self._sampling.take(table(Row, rows)):
            self._spans.write(pack(Row, kept))
        if self._sampling.full:
            self._thin()
        if self._sampling.thinned:
            self._collect(records(self.making, ended=True))

    def end(self, outcome: Outcome) -> None:
        """Packs what the makers wrote and says how the loop ended; only then is the run complete."""
        for gap in self._sampling.finish():
            self._spans.write(pack(Row, gap))
        self._spans.close()
        made = self._collect(records(self.making))
        made.close()
        items_, started = self._packed(ITEMS, Item, items(self.making)), self._packed(STARTED, Started, starts(self.making))
        self._counts.close()
        shutil.rmtree(self.making)
        rows = {stream.path.name: stream.rows for stream in (self._spans, made, items_, started, self._counts)}
        self.note(outcome=replace(outcome, rows=rows, worst_steps=self._sampling.worst))

    def _packed(self, name: str, kind: Event, tables: Iterable[Table]) -> _Stream:
        stream = _Stream(self.folder / name, kind)
        for rows in tables:
            stream.write(pack(kind, rows))
        stream.close()
        return stream

    def write_counts(self, counts: Sequence[Count]) -> None:
        """Appends readings of the system. From a thread of its own."""
        self._counts.write(pack(Count, counts))

    def _thin(self) -> None:
        """Drops every other block: what stays goes to a new file, which then takes the place of the old one, whole."""
        self._spans = self._rewritten(self._spans, Row, self._sampling.thin(_batches(self.folder / SPANS, Row)))
        if self._made is not None:
            kept = (rows[self._is_kept(rows)] for rows in _batches(self.folder / MADE, Made))
            self._made = self._rewritten(self._made, Made, kept)

    def _rewritten(self, old: _Stream, kind: Event, tables: Iterable[NDArray[np.int64]]) -> _Stream:
        new = _Stream(old.path.with_name(old.path.name + ".tmp"), kind)
        for rows in tables:
            new.write(pack(kind, rows))
        old.abandon()
        new.take_the_place_of(old.path)
        return new

    def _collect(self, tables: Iterable[NDArray[np.int64]]) -> _Stream:
        """Moves records of makers into the file of all: those that lie in kept time."""
        self._made = self._made or _Stream(self.folder / MADE, Made)
        for rows in tables:
            kept = rows[self._is_kept(rows)] if self._sampling.thinned else rows
            if len(kept):
                self._made.write(pack(Made, kept))
        return self._made

    def _is_kept(self, made: NDArray[np.int64]) -> NDArray[np.bool_]:
        begin, end = (made[:, Made._fields.index(name)] for name in ("begin_ns", "end_ns"))
        return overlap(self._sampling.kept_time, begin, end) > 0

    def abandon(self) -> None:
        """Closes what is open, for a run that cannot be ended properly. Never raises: what was written stays readable."""
        for stream in filter(None, (self._spans, self._counts, self._made)):
            stream.abandon()

    def _write_header(self) -> None:
        write_whole(self.folder / HEADER, to_text({"schema": SCHEMA, **asdict(self._header)}))  # type: ignore[arg-type]


class _Stream:
    """An Arrow IPC stream on its way to a file."""

    def __init__(self, path: Path, kind: Event) -> None:
        self.rows = 0
        self.path = path
        self._file = path.open("wb", buffering=0)
        schema = pa.schema([(name, pa.int64()) for name in kind._fields])
        self._stream = pa.ipc.new_stream(self._file, schema, options=pa.ipc.IpcWriteOptions(compression="lz4"))

    def write(self, batch: pa.RecordBatch) -> None:
        with _naming(self.path):
            self._stream.write_batch(batch)
        self.rows += batch.num_rows

    def take_the_place_of(self, path: Path) -> None:
        with _naming(path):
            self.path.replace(path)
        self.path = path

    def close(self) -> None:
        with _naming(self.path):
            self._stream.close()
            self._file.close()

    def abandon(self) -> None:
        for part in (self._stream, self._file):
            try:
                part.close()
            except (OSError, ValueError, pa.ArrowException):  # the disk may fail again; ValueError: it is closed already
                continue


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """A failed write names no file, and a failed open the temporary one: the user is told the one that was meant."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def to_text(value: Any) -> str:
    """JSON as we write it everywhere: readable, and refusing what JSON has no word for."""
    return json.dumps(value, indent=1, allow_nan=False) + "\n"


def write_whole(path: Path, text: str | bytes) -> None:
    """Writes all or nothing: a reader, or a full disk, never leaves half a file under this name."""
    data = text.encode() if isinstance(text, str) else text
    temporary = path.with_name(path.name + ".tmp")
    with _naming(path):
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise


def read_run(folder: Path) -> Run:
    """The run in this directory, as far as it goes. Raises UserError where there is none, or none that this version reads."""
    header = _read_header(folder)
    read = {name: _read_table(folder / name, kind) for name, kind in FILES.items()}
    found = {name: rows for name, (rows, _) in read.items()}
    if (folder / MAKING).is_dir():
        loose: Mapping[str, Callable[[Path], Iterator[Table]]] = {
            SPANS: _loose_spans,
            MADE: records,
            ITEMS: items,
            STARTED: starts,
        }
        found |= {name: _once(np.concatenate([found[name], *rows(folder / MAKING)])) for name, rows in loose.items()}
    counted = {SPANS: 0, MADE: 0} if header.outcome is None else header.outcome.rows
    whole = all(not cut for name, (_, cut) in read.items() if name in counted)
    if header.outcome is not None:
        whole = whole and all(len(found[name]) == n for name, n in counted.items() if name in found)
    return Run(
        header,
        spans=columns(Row, found[SPANS]),
        made=columns(Made, found[MADE]),
        items=columns(Item, found[ITEMS]),
        started=columns(Started, found[STARTED]),
        counts=columns(Count, found[COUNTS]),
        stacks=read_stacks(folder / STACKS),
        truncated=not whole,
    )


def read_stacks(path: Path) -> list[Stack]:
    """None where the program was not looked at. A line that is damaged is left out."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    stacks = []
    for line in lines:
        stack, _, count = line.rpartition(" ")
        role, *rest = stack.split(";")
        if len(rest) > 2 and count.isdecimal() and rest[1].replace(":", "", 1).isdecimal():
            users, *caller = map(int, rest[1].split(":"))
            stacks.append(Stack(role, rest[0], tuple(rest[2:]), users, int(count), *caller))
    return stacks


def _loose_spans(making: Path) -> Iterator[Table]:
    if (making / LOOSE_SPANS).is_file():
        yield from pieces(making / LOOSE_SPANS, len(Row._fields))


def _once(rows: Table) -> Table:
    """In the same order. A run that was cut while it was packed has some rows twice: packed, and as their makers wrote them."""
    _, first = np.unique(rows, axis=0, return_index=True)
    return rows[np.sort(first)]


def _read_header(folder: Path) -> Header:
    path = folder / HEADER
    try:
        text = path.read_text()
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(
            f"{folder}: no {HEADER} here, so this is no run directory. A run says its directory at its end"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}") from None
    try:
        content = json.loads(text, parse_constant=_no_number)
        schema = int(content.pop("schema"))
        assert schema >= 1
    except (ValueError, KeyError, TypeError, AttributeError, AssertionError, RecursionError):
        raise UserError(
            f"{path} is cut short or damaged after {len(text)} characters: without it the run cannot be read"
        ) from None
    if schema > SCHEMA:
        raise UserError(
            f"{folder} was written by format {schema}; this version reads up to {SCHEMA}. Install a newer stallscope"
        )
    for step in range(schema, SCHEMA):
        content = UPGRADES[step](content)
    return _header(path, content)


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


class _Open(BaseModel):
    """Part of a header as reports rely on it. A newer version of the same schema may have added entries: they are kept."""

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)


class _Scenario(_Open):
    source: dict[str, Any] = {}
    loader: dict[str, Any] = {}
    model: dict[str, Any] = {}


class _Environment(_Open):
    usable_cores: float | None = None


class _Device(_Open):
    kind: str
    name: str
    simulated: bool
    method: str | None


class _Source(_Open):
    emulated: bool = False
    disk: dict[str, Any] | None = None


class _Loader(_Open):
    n_workers: int = Field(ge=0, le=MOST_WORKERS)
    prefetch_batches: int = Field(ge=0, le=MOST_WORKERS**2)


class _Parts(_Open):
    scenario: _Scenario
    environment: _Environment
    device: _Device
    source: _Source
    loader: _Loader


def _header(path: Path, content: Mapping[str, Any]) -> Header:
    """Checked against the types of Header, and of the parts of it that reports read."""
    try:
        _Parts.model_validate(content)
        whole = _known(Header, content) | {"outcome": content["outcome"] and _known(Outcome, content["outcome"])}
        return TypeAdapter(Header).validate_json(json.dumps(whole), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"{path} is damaged: {'.'.join(map(str, first['loc']))}: {first['msg'].lower()}") from None
    except (KeyError, AttributeError, TypeError):
        raise UserError(f"{path} is damaged: outcome is missing, or no mapping") from None


def _known(kind: type[Header] | type[Outcome], content: Mapping[str, Any]) -> dict[str, Any]:
    names = {field.name for field in fields(kind)}
    return {name: value for name, value in content.items() if name in names}


def read_comparison(folder: Path) -> Comparison:
    """What summary.json says of several runs. Raises UserError where there is none, or none that this version reads."""
    path = folder / SUMMARY
    try:
        content = json.loads(path.read_text(), parse_constant=_no_number)
        if content["schema"] > SCHEMA:
            raise UserError(f"{path} was written by format {content['schema']}; this version reads up to {SCHEMA}")
        return TypeAdapter(Comparison).validate_json(json.dumps(content))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}") from None
    except (ValueError, LookupError, TypeError, RecursionError):
        raise UserError(f"{path} is damaged: the runs beside it can be read one by one") from None


def _batches(path: Path, kind: Event) -> Iterator[Table]:
    """The record batches of a stream that is still being written, one at a time."""
    with suppress(pa.ArrowException), pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as stream:
        for batch in stream:
            yield _rows(batch, kind)


def _rows(batch: pa.RecordBatch, kind: Event) -> Table:
    """Shape (n, fields). Fields that an older version did not write yet are the last ones: -1."""
    names = kind._fields[: len(batch.schema.names)]
    return table(kind, np.column_stack([batch.column(name).to_numpy() for name in names]))


def _read_table(path: Path, kind: Event) -> tuple[Table, bool]:
    """The whole record batches of a stream, and whether it was cut short."""
    parts: list[Table] = [np.empty((0, len(kind._fields)), dtype=np.int64)]
    try:
        with pa.ipc.open_stream(pa.BufferReader(path.read_bytes())) as stream:
            for batch in stream:
                parts.append(_rows(batch, kind))
    except FileNotFoundError:
        return parts[0], True
    except (OSError, KeyError, pa.ArrowException):  # ends in the middle of a record, or of the schema
        return np.concatenate(parts), True
    return np.concatenate(parts), False
