"""Runs read again: as they were measured, and as far as they go when something is missing."""

import json

import pytest


@pytest.mark.parametrize(("file", "share"), [("events.spans.arrow", 0.5), ("events.made.arrow", 0.9)])
def test_cut_events_are_read_up_to_the_cut_and_called_incomplete(measured, stallscope, copy, file, share):
    data = (copy / file).read_bytes()
    (copy / file).write_bytes(data[: int(len(data) * share)])
    result = stallscope("report", "a", "--format", "json").json
    assert not result["complete"]
    assert result["steps"] <= measured.ended.json["steps"]


def test_a_cut_header_is_refused(stallscope, copy):
    text = (copy / "run.json").read_text()
    (copy / "run.json").write_text(text[: len(text) // 2])
    assert "run.json is cut short or damaged after" in stallscope("report", "a").refusal


def test_a_newer_format_is_refused(stallscope, copy):
    header = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps(header | {"schema": 99}))
    refusal = stallscope("report", "a").refusal
    assert refusal == "a was written by format 99; this version reads up to 1. Install a newer stallscope"


@pytest.mark.parametrize("place", ["it.yaml", "nowhere"])
def test_a_place_that_holds_no_run_is_refused(stallscope, place):
    refusal = stallscope("report", place).refusal
    assert refusal == f"{place}: no run.json here, so this is no run directory. A run says its directory at its end"


def test_the_same_run_is_drawn_the_same(measured):
    assert measured("report", "a") == measured("report", "a")


def test_its_json_is_the_runs_own(measured):
    written = (measured.folder / "a/result.json").read_text()
    assert measured("report", "a", "--format", "json").out == written == measured.ended.out


def test_an_unknown_format_is_refused_with_those_there_are(measured):
    assert (
        measured("report", "a", "--format", "nonsense").refusal
        == "report: no kind 'nonsense'. It can be: json, lanes, png, text"
    )


class TestWatching:
    def test_a_run_that_has_ended_is_drawn_once(self, measured):
        ended = measured("report", "a", "--watch")
        assert ended.check_words(0) == ""
        assert ended.out.count("Draw this again") == 0
        assert ended.out.count("Throughput") == 1

    def test_is_for_text_on_a_terminal(self, measured):
        assert "leave out --format" in measured("report", "a", "--watch", "--format", "json").refusal
