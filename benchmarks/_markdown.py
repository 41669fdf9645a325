"""Tables of the pages that benchmarks write."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def table(head: Sequence[str], lines: Sequence[Sequence[str]], right: Collection[str] = ()) -> str:
    """right: columns whose cells stand at the right."""
    rules = ["--:" if name in right else "---" for name in head]
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, rules, *lines))
