"""Disks that are full or may not be written to: in words, naming the place, and what was finished before is kept."""

import pytest

from profiler.runfile import read_run
from tests.faults.conftest import FILES_OF_A_RUN

SSD = """\
source: {{kind: ssd, path: {path}, samples: 24, image: 16, cold: false}}
loader: naive
model: {{kind: simulated, step: 1 ms}}
batch_size: 4
epochs: 1
"""


WORKERS = "loader={kind: torch_workers, num_workers: 2}"


class TestFullWhileSamplesAreWritten:
    def test_says_how_much_is_needed_before_it_begins(self, stallscope, mount):
        place = mount("size=1m")
        stallscope.write(SSD.format(path=place / "samples"))
        refusal = stallscope("run", "it.yaml", "--out", "a").refusal
        assert refusal.startswith(f"source 'ssd': sample files need 3 MB, 1 MB are free: {place}/samples. Free space there")
        assert "source.path" in refusal
        assert stallscope.left() == ["it.yaml"]
        assert list(place.rglob("*.*")) == []

    def test_keeps_the_files_that_are_finished(self, stallscope, mount):
        place = mount("size=8m,nr_inodes=12")
        stallscope.write(SSD.format(path=place / "samples"))
        refusal = stallscope("run", "it.yaml", "--out", "a").refusal
        assert refusal.startswith(f"source 'ssd': No space left on device: {place}/samples/000/0000")
        assert stallscope.left() == ["it.yaml"]
        files = {file.name: file.read_bytes() for file in place.rglob("*.*")}
        assert files.pop("stallscope-samples.json")
        assert len(files) >= 4
        assert all(name.endswith(".jpg") and data.endswith(b"\xff\xd9") for name, data in files.items())


class TestFullWhileResultsAreWritten:
    """Pages of 4 KiB: each amount fails at another file."""

    @pytest.fixture
    def ended(self, stallscope, mount, kib):
        self.place = mount(f"size={kib}k")
        (self.place / "ballast").write_bytes(bytes(4096))
        return stallscope("run", "it.yaml", "--out", self.place / "a")

    @pytest.mark.parametrize("kib", [4])
    def test_without_a_header_there_is_no_run(self, stallscope, ended):
        assert f"No space left on device: {self.place}/a" in ended.refusal
        assert "no run" in stallscope("report", self.place / "a").refusal

    @pytest.mark.parametrize("kib", [20])
    def test_a_run_that_was_cut_is_kept_and_not_called_whole(self, stallscope, ended):
        first, *kept = ended.check_words(2).splitlines()
        assert first.startswith(f"error: No space left on device: {self.place}/a")
        assert "--out" in first
        result = stallscope.read(self.place / "a")
        assert kept == [f"{result.steps} steps were measured and are kept: python -m profiler report {self.place}/a"]
        assert not result.complete
        assert list(self.place.rglob("*.tmp")) == []

    @pytest.mark.parametrize("kib", [80])
    def test_a_recorded_run_is_whole_without_its_picture(self, stallscope, ended):
        refusal = ended.refusal
        assert refusal.startswith(f"No space left on device: {self.place}/a/stalls.png")
        assert refusal.endswith(f"The recorded run is whole: `python -m profiler report {self.place}/a` draws it")
        pictures = {"stalls.png", "lanes.png"}
        assert stallscope.left(self.place / "a") == [name for name in FILES_OF_A_RUN if name not in pictures]
        assert stallscope.read(self.place / "a").complete

    def test_a_long_run_is_kept_up_to_where_the_disk_was_full(self, stallscope, mount):
        place = mount("size=200k")
        ended = stallscope("run", "it.yaml", "--out", place / "a", "--steps", 3000)
        assert f"error: No space left on device: {place}/a/events." in ended.check_words(2)
        result = stallscope.read(place / "a")
        assert not result.complete
        assert 500 < result.steps < 3000

    def test_with_workers_a_long_run_is_kept_up_to_there_too(self, stallscope, mount):
        pytest.importorskip("torch", reason="needs torch: pip install 'stallscope[torch]'")
        place = mount("size=100k")
        ended = stallscope("run", "it.yaml", "--out", place / "a", "--steps", 3000, "--set", WORKERS)
        first, *kept = ended.check_words(2).splitlines()
        assert first.startswith(f"error: No space left on device: {place}/a/")
        run, result = read_run(place / "a"), stallscope.read(place / "a")
        assert kept == [f"{result.steps} steps were measured and are kept: python -m profiler report {place}/a"]
        assert not result.complete
        assert 0 < len(run.made["pid"]) < 3000
        assert set(run.made["pid"].tolist()) <= set(run.started["pid"].tolist())
        report = stallscope("report", place / "a", "--out", stallscope.folder / "it.txt")
        assert report.check_words(0) == ""
        assert "incomplete" in (stallscope.folder / "it.txt").read_text()

    def test_a_worker_whose_records_have_no_place_works_on(self, stallscope, mount):
        pytest.importorskip("torch", reason="needs torch: pip install 'stallscope[torch]'")
        place = mount("nr_inodes=7")  # the run's own files, and one for the two workers
        ended = stallscope("run", "it.yaml", "--out", place / "a", "--set", WORKERS)
        assert f"error: No space left on device: {place}/a/run.json" in ended.check_words(2)
        run, result = read_run(place / "a"), stallscope.read(place / "a")
        assert (result.steps, result.complete) == (40, False)
        assert len(set(run.made["pid"].tolist())) == 1
        assert 0 < len(run.made["pid"]) < 40

    def test_a_report_that_cannot_be_written(self, measured, mount):
        place = mount("size=4k")
        (place / "ballast").write_bytes(bytes(4096))
        refusal = measured("report", "a", "--format", "json", "--out", place / "it.json").refusal
        assert refusal.startswith(f"No space left on device: {place}/it.json")
        assert measured.left(place) == ["ballast"]


class TestReadOnly:
    @pytest.fixture
    def place(self, mount):
        return mount("ro")

    def test_out(self, stallscope, place):
        refusal = stallscope("run", "it.yaml", "--out", place / "runs/a").refusal
        assert refusal == f"Read-only file system: {place}/runs. Change its permissions, or name another place"

    def test_samples(self, stallscope, place):
        stallscope.write(SSD.format(path=place / "samples"))
        refusal = stallscope("run", "it.yaml", "--out", "a").refusal
        assert refusal.startswith(f"source 'ssd': Read-only file system: {place}/samples")
        assert stallscope.left() == ["it.yaml"]

    def test_report(self, measured, place):
        refusal = measured("report", "a", "--out", place / "it.txt").refusal
        assert refusal == f"Read-only file system: {place}/it.txt. Change its permissions, or name another place"
