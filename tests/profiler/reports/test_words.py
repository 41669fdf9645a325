"""Each thing has one name and one colour, and nothing that can be recorded is without."""

from itertools import combinations

import numpy as np
import pytest

from profiler import units
from profiler.events import CAUSES, PARTS, STAGES
from profiler.measure import measure
from profiler.reports import _palette, _words
from tests.fakes import FakeLoop

# Machado, Oliveira and Fernandes 2009, severity 1: how linear RGB looks without one kind of cones.
EYES = {
    "all cones": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
BARS = {
    "device": [*_palette.CAUSES.values(), _palette.BUSY],
    "stages": list(_palette.STAGES.values()),
    "host": list(_palette.PARTS.values()),
    "steps": [*_palette.PARTS.values(), _palette.STAGES["startup"]],
}


def lab(colour: str, eyes: list[list[float]]) -> np.ndarray:
    """CIE L*a*b* of a colour as these eyes see it: distances of about 2 can just be seen side by side."""
    rgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(eyes) @ linear, 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ seen / [0.9505, 1, 1.089]
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("eyes", EYES)
@pytest.mark.parametrize("bar", BARS)
def test_colours_of_one_bar_stay_apart_in_every_kind_of_colour_blindness(bar, eyes):
    seen = {colour: lab(colour, EYES[eyes]) for colour in BARS[bar]}
    nearest = min((float(np.linalg.norm(seen[a] - seen[b])), a, b) for a, b in combinations(seen, 2))
    assert nearest[0] > 15, nearest


@pytest.mark.parametrize(("listed", "name"), [(STAGES, "STAGES"), (CAUSES, "CAUSES"), (PARTS, "PARTS")])
def test_every_entry_of_the_closed_lists_has_a_name_and_a_colour(listed, name):
    assert set(getattr(_words, name)) == set(listed)
    assert set(getattr(_palette, name)) == set(listed)


def test_what_is_written_on_a_colour_is_black_or_white():
    assert _palette.ink_on(_palette.BUSY) == "white"
    assert _palette.ink_on(_palette.UNEXPLAINED) == _palette.INK


def test_a_small_gain_is_not_said_to_be_none():
    assert [units.speedup(times) for times in (1.6, 2.0, 1.04, 1.0)] == ["1.6x", "2x", "+4.0 %", "+0.0 %"]


def test_the_setup_names_source_loader_model_and_device():
    scenario = {"loader": {"kind": "torch_workers"}, "model": {"kind": "two_layer", "implementation": "torch_nn"}}
    device = {"kind": "cuda", "name": "H200", "simulated": False, "method": "events"}
    run = FakeLoop(steps=2).run(scenario=scenario, device=device, loader={"n_workers": 1, "prefetch_batches": 2})
    expected = "synthetic samples x torch_workers with 1 worker x two_layer/torch_nn on cuda (H200)"
    assert _words.setup(run, measure(run)) == expected


def test_a_setup_without_a_scenario_still_reads():
    run = FakeLoop(steps=2).run(scenario={}, source={}, device={"kind": "cpu", "method": None})
    assert _words.setup(run, measure(run)) == "source x loader x model on cpu"
