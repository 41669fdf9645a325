"""The numbers of one run, and what was concluded from them. result.json holds exactly these fields.

None means not measured and is never 0. A share is a part of `wall_s`, 0..1, unless it says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from .events import CAUSES, PARTS, STAGES, STEP_PARTS

Verdict = Literal["input_bound", "borderline", "not_input_bound", "too_short", "not_measured"]


@dataclass(frozen=True)
class Throughput:
    """Samples per second, counting the real length of each batch."""

    epoch: float | None = None
    """Samples / wall_s: start-up and restarts included."""
    steady: float | None = None
    """Samples / time of the steady steps: without warm-up steps and worker start-up."""
    steady_ci95: tuple[float, float] | None = None
    """Block bootstrap over whole periods of num_workers steps. Drift of the machine between runs is not in it."""


@dataclass(frozen=True)
class Spread:
    """How a duration is spread over the steady steps, in milliseconds. With W workers a starved loop waits once in W steps:
    p50 can be near 0 while most of the time is waiting. Judge by shares."""

    mean: float
    p50: float
    p95: float
    p99: float
    max: float


@dataclass(frozen=True)
class Stall:
    """The share of steady time in which the device idled because no batch was there: what the verdict rests on."""

    share: float
    ci95: tuple[float, float]


@dataclass(frozen=True)
class Storage:
    bytes_asked: int | None = None
    """Bytes that the source returned to the loader."""
    bytes_from_device: int | None = None
    """Bytes that the kernel fetched from a block device for them. Whole pages: may exceed bytes_asked a little."""
    cached_share: float | None = None
    """1 - bytes_from_device / bytes_asked, clamped to 0..1: what came from memory."""
    reads: int | None = None
    """Samples read."""
    emulated: bool = False
    """The device is arithmetic in time, not hardware."""


@dataclass(frozen=True)
class Cost:
    """What recording cost."""

    records: int
    dropped: int | None
    """Batches that were delivered but of whose making there is no record, at least; None where no making was recorded."""
    us_per_step_main: float | None = None
    """On the training thread, for an empty step; calibrated on this machine right after the run."""
    us_per_batch_worker: float | None = None
    """In the thread or process that makes the batches."""
    share: float | None = None
    """Of wall_s, on the training thread."""
    faults: Mapping[str, int] = field(default_factory=dict)
    """Background readings that failed, by name: how often. They are missing, and nothing else is."""


@dataclass(frozen=True)
class Finding:
    """One recognised cause, said in three lines."""

    kind: str
    severity: Literal["info", "moderate", "high"]
    verdict: str
    because: str
    """The measured figures that it rests on."""
    try_next: str
    evidence: Mapping[str, Any]
    """Every figure in the text, by its key in result.json or by its own name."""
    wall_share: float = 0.0
    """The part of wall_s that it accounts for: what costs most comes first."""
    predicted_gain: Mapping[str, Any] | None = None
    """{speedup, ci95} where it was computed, never guessed."""


@dataclass(frozen=True)
class Result:
    """The contract of result.json, schema 1. Keys may be added, never renamed or given another meaning."""

    name: str
    command: Sequence[str] | None
    scenario: Mapping[str, Any] | None
    complete: bool
    environment: Mapping[str, Any]
    identity: Mapping[str, Any]
    device: Mapping[str, Any]
    profiler_cost: Cost
    verdict: Verdict
    schema: int = 1
    sampled: bool = False
    """Only blocks of steps were kept, evenly spread: shares and spreads are theirs, totals are the whole run's."""
    sampled_share: float | None = None
    """Of wall_s: how much was kept; null where all was."""
    worst_steps: Sequence[Mapping[str, Any]] = ()
    """The longest waits of the whole run: step, epoch, wait_ms."""
    sync_every_step: bool | None = None
    steps: int = 0
    warmup_steps: int = 0
    """Left out of everything steady: they use up what was loaded ahead."""
    epochs: int = 0
    samples: int = 0
    wall_s: float = 0.0
    """The window: from the first iter() to the end of the last epoch."""
    epochs_detail: Sequence[Mapping[str, Any]] = ()
    """Per epoch (of more than 1,000 the first ones and the last): epoch, wall_s, first_wait_ms, bytes_asked,
    bytes_from_device, resident_share_before, resident_share_after, startup."""
    distinct_samples: int | None = None
    loss: Mapping[str, float | None] | None = None
    """first, last: means over the first and the last (at most ten) steps; null if not a number, as after a divergence."""
    unreadable_samples: int | None = None
    """Left out because they could not be read or decoded (`on_error: skip`), batches made ahead included."""
    before_loop_s: float | None = None
    """Process start to the first iter(): imports, writing sample files, building the parts."""
    startup_s: float | None = None
    """Inside the window: every iter(), and of each epoch's first wait the part before a worker began its first item."""
    harness_s: float | None = None
    """The profiler's own work between epochs, cut out of wall_s."""
    wall_by_part: Mapping[str, float | None] = field(default_factory=lambda: dict.fromkeys(PARTS))
    throughput_samples_per_s: Throughput = Throughput()
    demand_samples_per_s: float | None = None
    """What the consumer would take if no batch were ever late."""
    capacity_samples_per_s: float | None = None
    """What the loader could make if it were never held up by the consumer."""
    headroom_max_speedup: float | None = None
    """Upper bound of what faster loading can gain."""
    step_time_ms: Spread | None = None
    """From asking for a batch to asking for the next one."""
    wait_ms: Spread | None = None
    device_busy_share: float | None = None
    device_idle_share: float | None = None
    idle_by_cause: Mapping[str, float | None] = field(default_factory=lambda: dict.fromkeys(CAUSES))
    input_wait_share: float | None = None
    """The host's view: time inside iter() and next()."""
    input_wait_by_stage: Mapping[str, float | None] = field(default_factory=lambda: dict.fromkeys(STAGES))
    input_stall_share: float | None = None
    """The device's view: idle while the host waits. On an asynchronous device less than input_wait_share."""
    input_stall_by_stage: Mapping[str, float | None] = field(default_factory=lambda: dict.fromkeys(STAGES))
    steady_input_stall: Stall | None = None
    step_by_part: Mapping[str, float | None] = field(default_factory=lambda: dict.fromkeys(STEP_PARTS))
    work_s_by_stage: Mapping[str, float | None] | None = None
    """Seconds of all makers together, whether anyone waited for them or not: what is not in a wait was masked."""
    lock_wait_s: float | None = None
    """Of that, what threads of one process waited for the interpreter lock; part of `decode`: others compute meanwhile."""
    handoff_latency_ms: Spread | None = None
    """From a batch's end in its worker to the consumer's having it unpickled, of batches that came from a worker process."""
    blocked_samples: Mapping[str, Any] | None = None
    """Of samples that were recorded one by one and were blocked: n, blocked_ms_mean, in_flight_mean (how many at once, if any
    is), one_at_a_time (whether they wait in line; null: too few met), slope and meetings, which that rests on: see requests.py.
    null: samples are too short to be recorded, or none was blocked."""
    slowest_samples: Sequence[Mapping[str, Any]] | None = None
    """index, pid, ms, blocked_ms, cpu_ms, runq_ms; null where samples are too short to be recorded one by one."""
    au: Mapping[str, float | None] = field(default_factory=lambda: dict.fromkeys(("raw", "null_loader", "calibrated")))
    storage: Storage = Storage()
    source: Mapping[str, Any] = field(default_factory=dict)
    """What the source says of itself: medium, emulated, cold, label, the disk beneath with its measured speed."""
    loader: Mapping[str, Any] = field(default_factory=dict)
    """n_workers (0: the consumer makes the batches) and prefetch_batches (batches that may be ahead of the consumer)."""
    workers: Sequence[Mapping[str, Any]] | None = None
    """Per thread or process that made batches: batches, items and shares of its active time: cpu, runq, blocked, collate."""
    memory: Mapping[str, Any] | None = None
    """Of the process tree, at its largest; PSS counts shared pages once. `*_growth_*`: slopes over the later half."""
    processes: Mapping[str, Mapping[str, Any]] | None = None
    """By pid: memory, descriptors, threads, cores that it may use."""
    pressure: Mapping[str, float | None] | None = None
    """Share of the time in which some process waited for cpu, io or memory, as the kernel tells (PSI)."""
    disk: Mapping[str, Any] | None = None
    """The block device beneath the samples, whoever used it."""
    gpu: Mapping[str, Mapping[str, Any]] | None = None
    long_steps: Mapping[str, Any] | None = None
    """What a loop does in every so many steps only: every_steps, longer_ms, share (of wall_s). null: nothing recurs, or only
    blocks of steps were kept."""
    hot_lines: Sequence[Mapping[str, Any]] | None = None
    """Of a traced script, by stage, its lines that cost most: see hot_lines.py. null: its stacks were not looked at."""
    stacks_problem: str | None = None
    """Why not."""
    cpu_cores: float | None = None
    """CPU that this process and its children used while the loop ran, in cores."""
    foreign_cpu_share: float | None = None
    throttled_share: float | None = None
    """Of the time that the job ran or was not let run: held up by a CPU quota."""
    throttled_periods_share: float | None = None
    """Of the quota's periods: those in which it ran out."""
    loops: Sequence[Mapping[str, Any]] = ()
    stopped_by: str | None = None


NEIGHBOURS_SHARE = 0.1
"""More of the usable cores than this taken by other processes is said aloud: on two cores it is a fifth of one."""


def labels(result: Result) -> list[str]:
    """What no number of it must be quoted without."""
    said = {
        "simulated device": result.device.get("simulated"),
        "emulated storage": result.storage.emulated or result.source.get("emulated"),
        "loading removed: a few batches are given again and again": result.loader.get("replayed"),
        "sampled steps only": result.sampled,
    }
    return [label for label, holds in said.items() if holds]


@dataclass(frozen=True)
class Diagnosis:
    """Findings, the costliest first. Never empty: where no rule knows the cause, the last resort says what is known."""

    findings: Sequence[Finding]


def to_json(result: Result, diagnosis: Diagnosis) -> dict[str, Any]:
    """The content of result.json."""
    return {**asdict(result), "findings": [asdict(finding) for finding in diagnosis.findings]}
