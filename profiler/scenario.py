"""YAML -> Scenario. What is wrong is refused here, before anything is measured, with its line and what would be right."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from . import registry
from .errors import UserError
from .units import quote

FAMILIES = ("source", "loader", "model")
LENGTHS = ("epochs", "steps", "duration")

MAX_BYTES = 64 * 1024
MAX_DEPTH = 8


@dataclass(frozen=True)
class Part:
    """One of the three things that a scenario pairs."""

    kind: str
    options: Mapping[str, Any]
    """What its `build` is called with: every default filled in, durations and sizes in the units of their suffix."""


@dataclass(frozen=True)
class Scenario:
    """What to run, whole and checked. The keyword-only fields are a scenario's own options, with types and defaults as a
    part's `build` declares them."""

    name: str
    path: Path | None
    """Where it was read from; None: it was given as text."""
    source: Part
    loader: Part
    model: Part
    _: KW_ONLY
    batch_size: int
    epochs: int | None = None
    """How long to run: exactly one of epochs, steps and duration_ns is not None."""
    steps: int | None = None
    duration_ns: int | None = None
    seed: int = 0
    """Decides the order of the samples and the model's first weights."""
    repeats: int = 1
    """How often the whole run is made."""
    sync_every_step: bool = False
    """The loop waits for the device after each step. Nothing then overlaps the step but what workers do."""
    on_error: Literal["fail", "skip"] = "fail"
    """What a loader does with a sample that cannot be read or decoded."""


def settings(scenario: Scenario) -> dict[str, Any]:
    """The effective settings as JSON values: what a run file keeps of a scenario."""
    parts = {family: getattr(scenario, family) for family in FAMILIES}
    own = [option.parameter for option in registry.options(Scenario).values()]
    whole = {family: {"kind": part.kind, **part.options} for family, part in parts.items()}
    whole |= {name: getattr(scenario, name) for name in own}
    plain: dict[str, Any] = json.loads(json.dumps(whole))
    return plain


def shipped() -> dict[str, Path]:
    """The scenarios that come with stallscope, by name."""
    files = [file for folder in registry.folders(registry.SCENARIOS) for file in Path(folder).glob("*.yaml")]
    return {file.stem: file for file in sorted(files)}


def find(name_or_path: str) -> Path:
    """A file if there is one, else a shipped scenario of that name, even if a folder has the same."""
    known, exists = shipped(), os.path.exists(name_or_path)
    if name_or_path in known and (not exists or os.path.isdir(name_or_path)):
        return known[name_or_path]
    if exists:
        return Path(name_or_path)
    guess = registry.closest(name_or_path, known)
    raise UserError(f"no scenario {quote(name_or_path)}: no such file.{guess} Shipped ones: {', '.join(known)}")


def load(
    path: str | Path,
    settings: Sequence[str] = (),
    *,
    device: str | None = None,
    steps: int | None = None,
    duration: str | None = None,
    repeats: int | None = None,
) -> Scenario:
    """The scenario of a file, under the changes of a command line: `settings` are texts such as "loader.num_workers=4"."""
    path = Path(path)
    changes = {key: entry for text in settings for key, entry in _set(text).items()}
    if device == "simulated":
        changes["model", "kind"] = Entry("simulated", "--device simulated")
    flags = {"steps": steps, "duration": duration, "repeats": repeats}
    changes |= {(name,): Entry(value, f"--{name} {value}") for name, value in flags.items() if value is not None}
    return _checked(_changed(_written(_read(path), str(path)), changes), path)


# The text as settings: each a key, its value and where it was written. Nothing is known of parts here.


@dataclass(frozen=True)
class Entry:
    """One setting, as it was written."""

    value: Any
    place: str
    """What a message about it begins with: "scenarios/ssd.yaml:3" or "--set seed=1"."""


Key = tuple[str, ...]
"""("batch_size",) or ("loader", "num_workers")."""

At = Callable[..., str]
"""The place of a line, of a line and a column, or of the whole text."""


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        raise UserError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(raw) > MAX_BYTES:
        raise UserError(f"{path}: is larger than {MAX_BYTES // 1024} KiB: a scenario is a few lines of YAML")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: is not UTF-8 text (byte {error.start}): a scenario is a few lines of YAML") from None


def _written(text: str, name: str) -> dict[Key, Entry]:
    """All settings of a file."""

    def at(*position: int) -> str:
        return ":".join([name, *map(str, position)])

    root = _compose(text, at)
    if root is None:
        raise UserError(f"{name}: is empty: a scenario has {', '.join(FAMILIES)}, batch_size and one of {', '.join(LENGTHS)}")
    if not isinstance(root, yaml.MappingNode):
        raise UserError(f"{at(_line(root))}: a scenario is one `key: value` a line, such as batch_size: 32")
    entries: dict[Key, Entry] = {}
    for key, line, node in _items(root, at):
        entries |= _entries(key, at(line), node, at)
    return entries


def _set(text: str) -> dict[Key, Entry]:
    """The settings of one --set: one, unless its value is a whole part."""

    def at(*position: int) -> str:
        return f"--set {text}"

    name, equals, value = text.partition("=")
    if not equals:
        raise UserError(f"--set {text}: has no value: write it as --set loader.num_workers=4")
    node = _compose(value, at) or yaml.ScalarNode("", "")
    family, dot, option = name.strip().partition(".")
    return {(family, option): Entry(_plain(node, at), at())} if dot else _entries(family, at(), node, at)


def _entries(key: str, place: str, node: yaml.Node, at: At) -> dict[Key, Entry]:
    """A part unfolds into its kind and its options; a bare name is its kind."""
    if key in FAMILIES and isinstance(node, yaml.MappingNode):
        return {(key, option): Entry(_plain(value, at), at(line)) for option, line, value in _items(node, at)}
    return {(key, "kind") if key in FAMILIES else (key,): Entry(_plain(node, at), place)}


def _changed(written: Mapping[Key, Entry], changes: Mapping[Key, Entry]) -> dict[Key, Entry]:
    """The command line wins. A new kind forgets the options of the old one, and a new length the old length."""
    forgotten = {key[0] for key, new in changes.items() if key[1:] == ("kind",) and not _same(written.get(key), new)}
    if any((length,) in changes for length in LENGTHS):
        forgotten |= set(LENGTHS)
    return {key: entry for key, entry in written.items() if key[0] not in forgotten} | dict(changes)


def _same(old: Entry | None, new: Entry) -> bool:
    return old is not None and old.value == new.value


# YAML, without what a scenario has no use for.


def _compose(text: str, at: At) -> yaml.Node | None:
    try:
        _refuse_the_exotic(text, at)
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        position = (mark.line + 1, mark.column + 1) if mark else ()
        raise UserError(f"{at(*position)}: is not YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # the latter two: escapes beyond Unicode, endless digits
        raise UserError(f"{at()}: is not YAML: {str(error).partition(chr(10))[0]}") from None


def _refuse_the_exotic(text: str, at: At) -> None:
    """As the parser comes to it: before aliases can multiply or depth can exhaust the stack."""
    depth = documents = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        documents += isinstance(event, yaml.DocumentStartEvent)
        problem = _exotic(event, depth, documents)
        if problem:
            raise UserError(f"{at(_line(event))}: {problem}")


def _exotic(event: yaml.Event, depth: int, documents: int) -> str | None:
    if getattr(event, "anchor", None):
        return "anchors and aliases are not read: write the value out"
    if tag := getattr(event, "tag", None):
        return f"tags are not read: write the value without {quote(tag)}"
    if depth > MAX_DEPTH:
        return f"is nested deeper than {MAX_DEPTH}: a part holds options, and an option a value or a list"
    return "a second document begins: a file holds one scenario" if documents > 1 else None


def _line(node: Any) -> int:
    """Of a node or an event."""
    return int(node.start_mark.line) + 1


def _items(node: yaml.MappingNode, at: At) -> Iterator[tuple[str, int, yaml.Node]]:
    """Key, line and value. Keys are texts: 1 and true are names like any other."""
    lines: dict[str, int] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise UserError(f"{at(_line(key))}: a key is a word, not a list or a mapping")
        if key.value in lines:
            raise UserError(f"{at(_line(key))}: {quote(key.value)} is given twice, first in line {lines[key.value]}")
        lines[key.value] = _line(key)
        yield key.value, _line(key), value


def _plain(node: yaml.Node, at: At) -> Any:
    if isinstance(node, yaml.MappingNode):
        return {key: _plain(value, at) for key, _, value in _items(node, at)}
    if isinstance(node, yaml.SequenceNode):
        return [_plain(value, at) for value in node.value]
    return _unquoted(node.value) if isinstance(node, yaml.ScalarNode) and node.style is None else node.value


_NULLS = ("", "~", "null", "Null", "NULL")
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


def _unquoted(text: str) -> Any:
    """Numbers as JSON has them. The rules of YAML 1.1, PyYAML's own, read 1e-3 as text, but 1:30 as 90 and 010 as 8."""
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


# The settings as a scenario.


def _checked(entries: Mapping[Key, Entry], path: Path) -> Scenario:
    """Its own options first: they cost no import."""
    schema = registry.options(Scenario)
    _refuse_unknown(entries, [*FAMILIES, *schema])
    given = {key[0]: entry for key, entry in entries.items() if len(key) == 1}
    own = _options(schema, given, str(path), "")
    _refuse_small(schema, own, given)
    _refuse_lengths(given, str(path))
    source, loader, model = (_part(family, entries, str(path)) for family in FAMILIES)
    _refuse_large_batch(own["batch_size"], source, given["batch_size"].place)
    return Scenario(path.stem, path, source, loader, model, **own)


def _refuse_unknown(entries: Mapping[Key, Entry], known: Sequence[str]) -> None:
    for key, entry in entries.items():
        if key[0] == "vary":
            raise UserError(f"{entry.place}: vary is not supported yet: run once a value, with --set loader.num_workers=4")
        if key[0] not in known or (len(key) > 1 and key[0] not in FAMILIES):
            name = ".".join(key)
            guess = registry.closest(name, known)
            raise UserError(f"{entry.place}: no key {quote(name)}. It takes: {', '.join(known)}.{guess}")


def _options(schema: Mapping[str, registry.Option], given: Mapping[str, Entry], place: str, label: str) -> dict[str, Any]:
    try:
        return registry.check(schema, {name: entry.value for name, entry in given.items()})
    except registry.Refused as error:
        where = given[error.option].place if error.option else place
        raise UserError(f"{where}: {label}{error}") from None


def _part(family: str, entries: Mapping[Key, Entry], place: str) -> Part:
    given = {key[1]: entry for key, entry in entries.items() if key[0] == family}
    kind = given.pop("kind", Entry(None, next((entry.place for entry in given.values()), place)))
    if not isinstance(kind.value, str):
        known = registry.kinds(family)
        raise UserError(f"{kind.place}: {family} needs a kind. It can be: {', '.join(known)}")
    try:
        build = registry.load(family, kind.value).build
    except UserError as error:
        raise UserError(f"{kind.place}: {error}") from error
    return Part(kind.value, _options(registry.options(build), given, kind.place, f"{family}.{kind.value}: "))


_LEAST = {"batch_size": 1, "epochs": 1, "steps": 1, "duration": 1, "seed": 0, "repeats": 1}


def _refuse_small(schema: Mapping[str, registry.Option], own: Mapping[str, Any], given: Mapping[str, Entry]) -> None:
    for name, least in _LEAST.items():
        value, quantity = own[schema[name].parameter], schema[name].quantity
        if value is not None and value < least:
            bound, got = (quantity.text(least), quantity.text(value)) if quantity else (least, value)
            raise UserError(f"{given[name].place}: {name} must be {bound} or more, not {got}")


def _refuse_lengths(given: Mapping[str, Entry], place: str) -> None:
    lengths = [name for name in LENGTHS if name in given and given[name].value is not None]
    if not lengths:
        raise UserError(f"{place}: needs one of {', '.join(LENGTHS)}: how long to run")
    if len(lengths) > 1:
        raise UserError(
            f"{given[lengths[-1]].place}: {' and '.join(lengths)} are given together: a run takes one of {', '.join(LENGTHS)}"
        )


def _refuse_large_batch(batch_size: int, source: Part, place: str) -> None:
    samples = source.options.get("samples")
    if isinstance(samples, int) and batch_size > samples:
        raise UserError(
            f"{place}: batch_size {batch_size} is larger than the {samples} samples of source {source.kind!r}: "
            f"use batch_size: {samples} or less, or samples: {batch_size} or more"
        )
