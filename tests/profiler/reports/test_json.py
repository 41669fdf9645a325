import json
from dataclasses import replace

import pytest

from profiler.measure import measure
from profiler.reports.json import render
from profiler.result import Diagnosis, Finding
from tests.fakes import FakeLoop, run_of

FINDING = Finding(kind="k", severity="info", verdict="v", because="b", try_next="t", evidence={"input_wait_share": 0.5})


@pytest.mark.parametrize("run", [FakeLoop(steps=40).run(), run_of([], outcome=None)], ids=["a run", "nothing"])
def test_every_field_is_there_and_null_where_it_was_not_measured(run):
    result = measure(run)
    content = json.loads(render(run, result, Diagnosis([FINDING])))
    assert set(vars(result)) | {"findings"} == set(content)
    assert content["schema"] == 1
    assert content["foreign_cpu_share"] is None
    assert content["findings"][0]["evidence"] == {"input_wait_share": 0.5}


def test_what_json_has_no_word_for_is_refused():
    run = FakeLoop().run()
    with pytest.raises(ValueError, match="nan"):
        render(run, replace(measure(run), wall_s=float("nan")), Diagnosis([FINDING]))
