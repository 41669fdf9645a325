"""Causes injected into a user's own DataLoader are found: the eight quick cells of `make accuracy`, through the same code."""

import pytest

from benchmarks.accuracy import grid, run

pytest.importorskip("torch")


@pytest.mark.timeout(400)  # up to three runs, where others take the cores
@pytest.mark.parametrize("cell", grid.QUICK, ids=lambda cell: cell.name.replace(" ", "-"))
def test_the_injected_cause_is_found(cell, tmp_path):
    row = run.undisturbed(cell, tmp_path / "cell", run.usable_cores())
    if row.verdict == "disturbed":
        pytest.skip(f"needs a quiet machine: others took {row.others_share:.0%} of the cores")
    assert row.verdict == "ok", row.problems
