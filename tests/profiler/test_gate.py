import pytest

from profiler.errors import UserError
from profiler.gate import Gate, parse

RESULT = {"input_stall_share": 0.2, "verdict": "input_bound", "throughput_samples_per_s": {"steady": 400.0, "epoch": None}}


@pytest.mark.parametrize(
    ("text", "fails"),
    [
        ("input_stall_share > 0.1", True),
        ("input_stall_share>0.2", False),
        ("input_stall_share >= 0.2", True),
        ("throughput_samples_per_s.steady < 500", True),
        ("throughput_samples_per_s.steady <= 399", False),
        ("verdict == input_bound", True),
        ("verdict != input_bound", False),
    ],
)
def test_a_condition_that_holds_fails_the_gate(text, fails):
    assert (parse(text).failed(RESULT) is not None) == fails


def test_it_says_what_it_found():
    assert parse("input_stall_share > 0.1").failed(RESULT) == "input_stall_share is 0.2: > 0.1"


def test_what_was_not_measured_cannot_be_ruled_out():
    assert "was not measured" in parse("throughput_samples_per_s.epoch < 1").failed(RESULT)
    assert "was not measured" in parse("loss.last < 1").failed(RESULT)


def test_values_of_another_kind_are_not_compared():
    assert "cannot be compared" in Gate("verdict", ">", 1.0).failed(RESULT)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no condition"),
        ("input_stall_share", "no condition"),
        ("input_stall_share = 1", "no condition"),
        ("stall > 1", "has no key 'stall'. It has: name"),
        ("verdict > input_bound", "is no number"),
    ],
)
def test_what_is_no_condition_is_refused(text, says):
    with pytest.raises(UserError, match=says):
        parse(text)
