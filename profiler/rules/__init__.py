"""One file a kind of finding, each with `judge(result) -> Finding | None`. KINDS is the closed list of kinds."""

KINDS = (
    "not_input_bound",
    "too_short",
    "too_little_parallelism",
    "worker_startup",
    "handoff",
    "sampler",
    "collate",
    "interpreter_lock",
    "decode_cpu",
    "disk_seeks",
    "storage_latency",
    # The verdict itself, where no rule knows the cause:
    "input_bound",
    "borderline",
    "not_measured",
)
"""In this order findings of equal weight are told: what the user can change at once comes before what costs work."""
