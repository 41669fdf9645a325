"""A scenario's text, and the changes of a command line, as settings: each a key, a value and where it was written.

Nothing is known of parts here. What is refused is refused with its line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from .errors import UserError
from .units import quote

FAMILIES = ("source", "loader", "model")
LENGTHS = ("epochs", "steps", "duration")
VARY = "vary"

MAX_BYTES = 64 * 1024
MAX_DEPTH = 8


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


@dataclass(frozen=True)
class Grid:
    """One entry of `vary`: what is varied together."""

    choices: Sequence[Sequence[Mapping[Key, Entry]]]
    """Per key, what it can be: the settings that a choice makes. One choice: it is fixed here."""
    place: str


def read(path: Path) -> dict[Key, Entry]:
    """All settings of a file. Raises UserError for what is no scenario's text."""
    return _written(_read(path), str(path))


def given(text: str) -> dict[Key, Entry]:
    """The settings of one --set: one, unless its value is a whole part."""

    def at(*position: int) -> str:
        return f"--set {text}"

    name, equals, value = text.partition("=")
    if not equals:
        raise UserError(f"--set {text}: has no value: write it as --set loader.num_workers=4")
    return _named(name.strip(), at(), _compose(value, at) or yaml.ScalarNode("", ""), at)


def changed(written: Mapping[Key, Entry], changes: Mapping[Key, Entry]) -> dict[Key, Entry]:
    """The changes win. A new kind forgets the options of the old one, and a new length the old length."""
    forgotten = {key[0] for key, new in changes.items() if key[1:] == ("kind",) and not _same(written.get(key), new)}
    if any((length,) in changes for length in LENGTHS):
        forgotten |= set(LENGTHS)
    return {key: entry for key, entry in written.items() if key[0] not in forgotten} | dict(changes)


def _same(old: Entry | None, new: Entry) -> bool:
    return old is not None and old.value == new.value


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


def _named(name: str, place: str, node: yaml.Node, at: At) -> dict[Key, Entry]:
    """The settings of a name that may have a dot: `loader.num_workers`."""
    family, dot, option = name.partition(".")
    return {(family, option): Entry(_plain(node, at), place)} if dot else _entries(family, place, node, at)


def _entries(key: str, place: str, node: yaml.Node, at: At) -> dict[Key, Entry]:
    """A part unfolds into its kind and its options; a bare name is its kind."""
    if key == VARY:
        return {(key,): Entry(_grids(node, place, at), place)}
    if key in FAMILIES and isinstance(node, yaml.MappingNode):
        return {(key, option): Entry(_plain(value, at), at(line)) for option, line, value in _items(node, at)}
    return {(key, "kind") if key in FAMILIES else (key,): Entry(_plain(node, at), place)}


def _grids(node: yaml.Node, place: str, at: At) -> list[Grid]:
    """`vary` is a mapping whose lists unfold, or a list of such mappings, which follow each other."""
    if isinstance(node, yaml.ScalarNode) and _plain(node, at) is None:
        return []
    grids: list[yaml.Node] = node.value if isinstance(node, yaml.SequenceNode) else [node]
    if not grids:
        raise UserError(f"{place}: vary is an empty list: write a mapping such as {{loader.num_workers: [0, 2, 4]}}")
    return [_grid(grid, place if grid is node else at(_line(grid)), at) for grid in grids]


def _grid(node: yaml.Node, place: str, at: At) -> Grid:
    if not isinstance(node, yaml.MappingNode) or not node.value:
        raise UserError(f"{place}: vary is a mapping such as {{loader.num_workers: [0, 2, 4]}}, or a list of them")
    return Grid([_choices(*item, at) for item in _items(node, at)], place)


def _choices(name: str, line: int, node: yaml.Node, at: At) -> list[dict[Key, Entry]]:
    """One for each entry of a list; a single value is the only choice."""
    if name == VARY:
        raise UserError(f"{at(line)}: vary cannot be nested: write several keys, or a list of mappings")
    nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
    if not nodes:
        raise UserError(f"{at(line)}: vary: {name} has an empty list: write the values to compare")
    return [_named(name, at(_line(each)), each, at) for each in nodes]


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
