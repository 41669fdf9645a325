"""YAML -> Scenario. What is wrong is refused here, before anything is measured, with its line and what would be right."""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, Literal

from . import registry
from .errors import NotInstalled, UserError
from .settings import FAMILIES, LENGTHS, VARY, Entry, Grid, Key, changed, given, read
from .units import quote

MOST_VARIANTS = 500


@dataclass(frozen=True)
class Part:
    """One of the three things that a scenario pairs."""

    kind: str
    options: Mapping[str, Any]
    """What its `build` is called with: every default filled in, durations and sizes in the units of their suffix."""
    place: str = field(default="", compare=False)
    """Where its kind was written."""
    places: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Where its options were written, those that were."""


def build(family: str, part: Part, *handed_in: Any) -> Any:
    """The part itself. Raises UserError, with the place, for options that it cannot take together or as they are."""
    try:
        return registry.build(family, part.kind, *handed_in, **part.options)
    except NotInstalled as error:
        raise NotInstalled(f"{part.place}: {error}" if part.place else str(error)) from error
    except registry.Refused as error:
        place = part.places.get(error.option or "", part.place)
        raise UserError(f"{place}: {error}" if place else str(error)) from error


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


@dataclass(frozen=True)
class Variant:
    """One of the scenarios that `vary` unfolds into."""

    scenario: Scenario
    settings: Mapping[str, Any]
    """What `vary` sets, as it is written there: "loader.num_workers" -> 2."""
    group: str
    """What it shares with the others of its mapping: "threads, num_threads 2". Empty where nothing is fixed."""
    label: str
    """What sets it apart in its group: "buffer_batches 4"."""


def load(path: str | Path, settings: Sequence[str] = (), **flags: Any) -> Scenario:
    """The one scenario of a file. Raises UserError if it varies something: `unfold` gives all of them."""
    variants = unfold(path, settings, **flags)
    if len(variants) > 1:
        raise UserError(f"{path}: varies its settings, and one scenario is needed here: add --set {VARY}=null")
    return variants[0].scenario


def unfold(
    path: str | Path,
    settings: Sequence[str] = (),
    *,
    device: str | None = None,
    steps: int | None = None,
    duration: str | None = None,
    repeats: int | None = None,
) -> tuple[Variant, ...]:
    """The scenarios of a file, under the changes of a command line: `settings` are texts such as "loader.num_workers=4".

    Without `vary` there is one, without a label. Raises UserError for whatever cannot be measured, before anything is.
    """
    path = Path(path)
    changes = {key: entry for text in settings for key, entry in given(text).items()}
    if device == "simulated":
        changes["model", "kind"] = Entry("simulated", "--device simulated")
    flags = {"steps": steps, "duration": duration, "repeats": repeats}
    changes |= {(name,): Entry(value, f"--{name} {value}") for name, value in flags.items() if value is not None}
    written = read(path)
    grids = (changes.pop((VARY,), None) or written.pop((VARY,), Entry([], ""))).value
    written.pop((VARY,), None)
    if not grids:
        return (Variant(_checked(changed(written, changes), path), {}, "", ""),)
    variants = []
    for grid in grids:
        _refuse_varied(changes, grid)
        _refuse_repeats(grid)
        variants += [_variant(written, grid, choice, changes, path) for choice in _combinations(grid)]
    _refuse_twice(variants, grids[0].place)
    return tuple(variants)


Choice = Sequence[Mapping[Key, Entry]]


def _combinations(grid: Grid) -> list[Choice]:
    """Every combination; the last key varies fastest."""
    n = math.prod(len(choices) for choices in grid.choices)
    if n > MOST_VARIANTS:
        raise UserError(f"{grid.place}: vary unfolds into {n:,} runs; at most {MOST_VARIANTS} are measured")
    return list(itertools.product(*grid.choices))


def _variant(written: Mapping[Key, Entry], grid: Grid, choice: Choice, changes: Mapping[Key, Entry], path: Path) -> Variant:
    """The command line comes before the choice, whose options may be those of a kind that it set, and its options come after
    it, since the choice may be of another kind, which forgets them."""
    entries = changed(written, changes)
    for settings in [*choice, {key: entry for key, entry in changes.items() if key[1:] != ("kind",)}]:
        entries = changed(entries, settings)
    varied = [settings for settings, choices in zip(choice, grid.choices, strict=True) if len(choices) > 1]
    fixed = [settings for settings in choice if settings not in varied]
    whole = {".".join(key): entry.value for settings in choice for key, entry in settings.items()}
    if not varied:
        varied, fixed = fixed, []
    return Variant(_checked(entries, path), whole, _words(fixed), _words(varied))


def _words(choice: Choice) -> str:
    """ "threads, num_threads 2": kinds by their name alone, other settings by the option and its value."""
    entries = [item for settings in choice for item in settings.items()]
    return ", ".join(_said(entry.value) if key[-1] == "kind" else f"{key[-1]} {_said(entry.value)}" for key, entry in entries)


def _said(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _refuse_varied(changes: Mapping[Key, Entry], grid: Grid) -> None:
    """A --set of what is varied would make all variants alike."""
    varied = {key for choices in grid.choices if len(choices) > 1 for settings in choices for key in settings}
    for key, entry in changes.items():
        if key in varied:
            name = ".".join(key)
            raise UserError(f"{entry.place}: {name} is what vary sets: leave one of them out, or add --set {VARY}=null")


def _refuse_repeats(grid: Grid) -> None:
    """All settings are measured equally often."""
    for settings in itertools.chain.from_iterable(grid.choices):
        if entry := settings.get(("repeats",)):
            raise UserError(f"{entry.place}: repeats cannot be varied: write it beside vary, for all settings")


def _refuse_twice(variants: Sequence[Variant], place: str) -> None:
    for one, other in itertools.combinations(variants, 2):
        if one.scenario == other.scenario:
            raise UserError(
                f"{place}: vary has the same settings twice: {one.label or one.group}, {other.label or other.group}"
            )


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
        if key[0] not in known or (len(key) > 1 and key[0] not in FAMILIES):
            name, takes = ".".join(key), [*known, VARY]
            guess = "" if key == (VARY,) else registry.closest(name, takes)
            where = " inside vary" if key == (VARY,) else ""
            raise UserError(f"{entry.place}: no key {quote(name)}{where}. It takes: {', '.join(takes)}.{guess}")


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
    options = _options(registry.options(build), given, kind.place, f"{family}.{kind.value}: ")
    places = {name: entry.place for name, entry in given.items()}
    return Part(kind.value, options, kind.place, places)


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
    if isinstance(samples, int) and 0 < samples < batch_size:
        raise UserError(
            f"{place}: batch_size {batch_size} is larger than the {samples} samples of source {source.kind!r}: "
            f"use batch_size: {samples} or less, or samples: {batch_size} or more"
        )
