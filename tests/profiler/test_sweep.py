"""In which order runs are made, which are made again, and what is gone on with: no run is made here."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from profiler import sweep as sweep_module
from profiler.child import Ended
from profiler.comparison import Measured
from profiler.errors import UserError
from profiler.runfile import RunWriter, read_comparison
from profiler.scenario import settings as effective
from profiler.scenario import unfold
from profiler.sweep import MOST_TRIES, Sweep
from tests.fakes import header

YAML = """\
source: {kind: synthetic, samples: 64}
loader: naive
model: simulated
batch_size: 8
steps: 10
repeats: 3
vary: {source.read: [1 ms, 2 ms, 3 ms, 4 ms, 5 ms]}
"""
RUN = Measured("run-000", 0, 100.0, None, 0.5, 0.5, None, None, None, None, 0.0, "too_short")


@pytest.fixture
def made(tmp_path):
    (tmp_path / "s.yaml").write_text(YAML)
    return Sweep("s", unfold(tmp_path / "s.yaml"), tmp_path / "out", ["run", "s"], "auto")


def test_every_round_has_all_settings_in_an_order_of_its_own_after_the_ceiling(made):
    first, *plan = made.plan()
    rounds = [plan[i : i + 5] for i in range(0, 15, 5)]
    assert first is None
    assert [sorted(each) for each in rounds] == [[0, 1, 2, 3, 4]] * 3
    assert len({tuple(each) for each in rounds}) > 1
    assert made.plan() == [None, *plan]


def test_what_is_had_is_not_measured_again(made):
    whole = made.plan()
    made.runs = [replace(RUN, setting=i) for i in whole[:7]]
    assert made.plan() == whole[7:]


def test_a_setting_that_cannot_be_measured_is_left_out(made):
    made.settings[2] = replace(made.settings[2], problem="needs something")
    assert Counter(made.plan()) == {None: 1, 0: 3, 1: 3, 3: 3, 4: 3}


def test_there_is_no_ceiling_where_the_consumers_differ(tmp_path):
    (tmp_path / "s.yaml").write_text(YAML.replace("source.read: [1 ms, 2 ms, 3 ms, 4 ms, 5 ms]", "model.step: [1 ms, 2 ms]"))
    assert None not in Sweep("s", unfold(tmp_path / "s.yaml"), tmp_path / "out", [], "auto").plan()


class TestDisturbed:
    def again(self, made, foreign):
        """Makes all runs, and those that are asked for again. foreign: what others took, run after run of a setting."""
        share = {i: iter(shares) for i, shares in foreign.items()}
        made.runs = [replace(RUN, setting=i, foreign_cpu_share=next(share.get(i, iter([0.0])), 0.0)) for i in made.plan()]
        asked = []
        for i in made.disturbed():
            asked.append(i)
            made.runs.append(replace(RUN, setting=i, foreign_cpu_share=next(share[i])))
        return asked

    def test_runs_are_made_again_until_they_are_quiet(self, made):
        assert self.again(made, {1: [0.0, 0.5, 0.0, 0.0], 3: [0.4, 0.0, 0.0, 0.5, 0.0]}) == [1, 3, 3]

    def test_quiet_ones_are_not(self, made):
        assert self.again(made, {2: [0.1, 0.1, 0.1]}) == []

    def test_one_that_stays_disturbed_is_given_up(self, made):
        assert self.again(made, {1: [0.5] * 9}) == [1] * (MOST_TRIES - 1)

    def test_and_all_together_no_more_than_a_third_on_top(self, made):
        assert len(self.again(made, {i: [0.5] * 9 for i in range(5)})) == 5


class TestCheck:
    def outcome(self, made, monkeypatch, ended):
        monkeypatch.setattr(sweep_module, "carry_out", lambda tasks: [ended] * len(tasks))
        made.check(silent=True)

    def test_samples_are_made_ready_once_a_source(self, made, monkeypatch):
        asked = []
        monkeypatch.setattr(sweep_module, "carry_out", lambda tasks: asked.append(tasks) or [Ended("well")] * len(tasks))
        made.variants = (*made.variants, *made.variants[:2])
        made.check(silent=True)
        assert [task.prepare for [*tasks] in asked for task in tasks] == [True] * 5 + [False] * 2

    def test_a_missing_framework_leaves_the_setting_out_with_the_reason(self, made, monkeypatch):
        self.outcome(made, monkeypatch, Ended("not_installed", "needs x: pip install x"))
        assert {(setting.problem, setting.installed) for setting in made.settings} == {("needs x: pip install x", False)}

    def test_anything_else_is_refused_with_the_name_of_the_setting(self, made, monkeypatch):
        with pytest.raises(UserError, match=r"^read 1 ms: no such thing$"):
            self.outcome(made, monkeypatch, Ended("refused", "no such thing"))


class TestTakeUp:
    def finish(self, made, name, scenario, complete=True):
        writer = RunWriter(made.folder / name)
        writer.begin(header(scenario=scenario, outcome=None))
        if complete:
            writer.end(header().outcome)
        else:
            writer.abandon()

    def test_whole_runs_are_taken_up_and_others_stay_as_they_are(self, made):
        made.folder.mkdir()
        made.save()
        scenarios = [effective(variant.scenario) for variant in made.variants]
        self.finish(made, "ceiling-000", scenarios[0])
        self.finish(made, "run-000", scenarios[3])
        self.finish(made, "run-001", scenarios[1], complete=False)
        (made.folder / "run-002").mkdir()
        self.finish(made, "run-000-copy", scenarios[3])
        (made.folder / "run-00x").mkdir()
        again = Sweep("s", made.variants, made.folder, [], "auto")
        again.take_up()
        assert [(run.run, run.setting) for run in again.runs] == [("ceiling-000", None), ("run-000", 3)]
        assert again._next("run") == made.folder / "run-003"
        assert again._next("ceiling") == made.folder / "ceiling-001"

    def test_other_settings_are_refused(self, made, tmp_path):
        made.folder.mkdir()
        made.save()
        other = Sweep("s", unfold(tmp_path / "s.yaml", ["seed=1"]), made.folder, [], "auto")
        with pytest.raises(UserError, match="holds an unfinished comparison of other settings"):
            other.take_up()

    def test_a_finished_one_is_refused(self, made):
        made.folder.mkdir()
        made.save(complete=True)
        with pytest.raises(UserError, match="holds a finished comparison"):
            made.take_up()


def test_the_summary_is_read_as_it_was_written(made):
    made.folder.mkdir()
    made.runs = [replace(RUN, setting=2, throughput_samples_per_s=12.5, ci95=(1.0, 2.0))]
    written = made.save()
    assert read_comparison(Path(made.folder)).runs[0].ci95 == (1.0, 2.0)
    assert read_comparison(made.folder).settings[2].scenario == written.settings[2].scenario


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"schema": 1}', '{"schema": "x"}', '{"schema": 1, "name": NaN}'])
def test_a_damaged_summary_is_refused_in_words(tmp_path, text):
    (tmp_path / "summary.json").write_text(text)
    with pytest.raises(UserError, match="is damaged"):
        read_comparison(tmp_path)


def test_a_newer_summary_is_refused(tmp_path):
    (tmp_path / "summary.json").write_text('{"schema": 99}')
    with pytest.raises(UserError, match="format 99"):
        read_comparison(tmp_path)
