"""Words: what every part of the time is called, and what that means to someone who has never seen this tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..loops import name as loop_name
from ..result import Result
from ..result import labels as result_labels
from ..run import Run
from ..units import count, share

NOT_MEASURED = "not measured"


class Word(NamedTuple):
    name: str
    meaning: str


PARTS = {
    "wait": Word("waiting for a batch", "inside iter() and next()"),
    "step": Word("in the step", "has a batch and works on it"),
    "outside_loop": Word("outside the loop", "validation, checkpoints"),
}
CAUSES = {
    "outside_loop": PARTS["outside_loop"],
    "input": Word("input", "no batch was there to work on"),
    "copy": Word("copy", "batch on its way to the device"),
    "sync": Word("sync", "host in a call that waits for it"),
    "host": Word("host", "own code before the launch"),
    "unexplained": Word("unexplained", "none of these could be shown"),
}
STAGES = {
    "startup": Word("start-up", "of workers, and shutting them down"),
    "sampler": Word("sampler", "choosing which samples come next"),
    "fetch": Word("fetch", "blocked while reading"),
    "decode": Word("decode", "computing: decode, transform"),
    "core_shortage": Word("core shortage", "ready to run, but no free core"),
    "collate": Word("collate", "making one batch of samples"),
    "handoff": Word("hand-off", "batch on its way from a worker"),
    "unexplained": Word("unexplained", "none of these could be shown"),
}
BUSY = {
    "events": "at work, gaps in a step included",
    "kernels": "at work, in sampled windows",
    "clock": "at work, by its own clock",
    "model_step": "the model's step: CPU is device",
    "loop_body": "the loop's body stands for it",
}
"""What `device busy` means, by the method that it is measured with."""
HOST_AS_DEVICE = {
    "model_step": "the CPU is the device here: busy in the model's step",
    "loop_body": "no device was watched: the loop's body stands for it",
}
"""Where no device works beside the host."""


def setup(run: Run, result: Result) -> str:
    """What was paired with what: source x loader x model and device; of a traced script, which of its loaders."""
    if run.header.loops:
        return _traced(run.header.loops[0], result)
    loader = _kind(result, "loader")
    if workers := run.header.loader.get("n_workers"):
        loader += f" with {count(workers)} worker{'' if workers == 1 else 's'}"
    return " x ".join((str(result.source.get("label") or _kind(result, "source")), loader, _model(result)))


def _traced(loop: Mapping[str, Any], result: Result) -> str:
    said = f"{loop_name(loop)}: {str(loop['kind']).rpartition('.')[2]}"
    if loop["dataset"] is not None:
        said += f" over {str(loop['dataset']).rpartition('.')[2]}"
        said += "" if loop["dataset_samples"] is None else f" ({count(loop['dataset_samples'])} samples)"
        said += f", num_workers={loop['n_workers']}"
    said += "" if loop["batch_size"] is None else f", batch_size={loop['batch_size']}"
    return f"{said}, on {result.device.get('kind')} ({result.device.get('name')})"


def _model(result: Result) -> str:
    name = str(result.device.get("name") or result.device.get("kind"))
    if result.device.get("simulated"):
        return f"simulated device, {name}"
    settings = _settings(result, "model")
    model = "/".join(str(settings[key]) for key in ("kind", "implementation") if settings.get(key)) or "model"
    kind = str(result.device.get("kind"))
    return f"{model} on {kind}" + ("" if name == kind else f" ({name})")


def _kind(result: Result, part: str) -> str:
    return str(_settings(result, part).get("kind") or part)


def _settings(result: Result, part: str) -> Mapping[str, Any]:
    return (result.scenario or {}).get(part) or {}


def labels(run: Run, result: Result) -> list[str]:
    """What a number must not be quoted without."""
    said = result_labels(result)
    if not result.complete:
        said.append(f"incomplete run: {_ended(run, result)}")
    return said


def _ended(run: Run, result: Result) -> str:
    if result.stopped_by:
        return f"stopped by {result.stopped_by}"
    return "its files are cut short" if run.truncated else "it was killed, or has not ended yet"


def no_storage(result: Result) -> str | None:
    """Why there is nothing to tell of the storage; None where there is."""
    if result.source.get("medium") == "synthetic":
        return "none: the samples are made up, and read from nowhere"
    return NOT_MEASURED if result.storage.bytes_asked is None else None


def throughput(samples_per_s: float | None) -> str:
    return NOT_MEASURED if samples_per_s is None else f"{count(samples_per_s)} samples/s"


def share_or_not(part: float | None) -> str:
    return NOT_MEASURED if part is None else share(part)
