"""A hard disk, real or emulated, and other devices by their numbers."""

import pytest

from loaders.sources import _disk, emulated, hdd, ssd

SMALL = {"samples": 20, "image": 8}
QUICK = {**SMALL, "seek_ns": 1_000_000, "rotation_ns": 500_000}


@pytest.fixture
def prepared(tmp_path):
    def prepared(build, **options):
        source = build(tmp_path, **options)
        source.prepare(lambda done, total: None)
        return source

    return prepared


def test_it_is_emulated_and_says_so_unless_a_path_leads_to_a_real_one(prepared):
    said = prepared(hdd.build, **QUICK).describe()
    assert (said["medium"], said["emulated"]) == ("emulated", True)
    assert "an emulated hard disk (seek 1 ms, rotation 0.5 ms, 180 MB/s), read cold" in said["label"]
    assert said["device"]["requests_in_flight"] == 1
    assert "7200 rpm" in said["device"]["source"]


@pytest.mark.parametrize(
    ("rotational", "virtual", "real"), [(True, False, True), (True, True, False), (False, False, False), (None, None, False)]
)
def test_a_virtual_disk_that_calls_itself_rotational_is_none(tmp_path, monkeypatch, rotational, virtual, real):
    identity = _disk.identify(tmp_path) | {"rotational_flag": rotational, "virtual": virtual}
    monkeypatch.setattr(_disk, "identify", lambda path: identity)
    source = hdd.build(tmp_path / "cache", path=str(tmp_path / "mine"), **QUICK)
    assert isinstance(source, ssd.Ssd) is real


def test_the_bytes_are_those_of_the_files(prepared):
    disk, plain = prepared(hdd.build, **QUICK), prepared(ssd.build, **SMALL, cold=False)
    assert [disk.read(i) for i in range(20)] == [plain.read(i) for i in range(20)]
    assert not hasattr(disk, "jpeg_paths")


def test_cold_goes_to_the_device_in_each_epoch_and_warm_only_in_the_first(prepared):
    cold, warm = prepared(hdd.build, **QUICK), prepared(hdd.build, **QUICK, cold=False)
    for source, shares in ((cold, [0.0, 0.0]), (warm, [0.0, 1.0])):
        for share in shares:
            assert source.start_epoch() == share
            for i in range(20):
                source.read(i)


@pytest.mark.parametrize("device", emulated.PRESETS)
def test_other_devices_have_numbers_with_a_source(prepared, device):
    said = prepared(emulated.build, **SMALL, device=device).describe()
    assert said["emulated"]
    assert said["device"]["latency_ns"] > 0
    assert len(said["device"]["source"]) > 30


def test_own_numbers_replace_those_of_the_device_and_it_is_said(prepared):
    said = prepared(emulated.build, **SMALL, device="nfs", latency_ns=5_000_000, requests_in_flight=3).describe()
    assert said["device"]["latency_ns"] == 5_000_000
    assert said["device"]["bytes_per_s"] == emulated.PRESETS["nfs"].speed.bytes_per_s
    assert said["device"]["source"].startswith("latency_ns, requests_in_flight as given; else ")
    assert "(5 ms, 1170 MB/s, 3 in flight)" in said["label"]


@pytest.mark.parametrize(
    ("build", "options", "message"),
    [
        (hdd.build, {"bandwidth_bytes_per_s": 0}, "bandwidth=0: must be at least 1"),
        (emulated.build, {"bandwidth_bytes_per_s": 0}, "bandwidth=0: must be at least 1"),
        (emulated.build, {"requests_in_flight": 0}, "requests_in_flight=0: must be 1 to 4096"),
        (emulated.build, {"device": "tape"}, "device=tape: must be one of sata_ssd"),
        (emulated.build, {"samples": 0}, "samples=0"),
    ],
)
def test_what_it_cannot_be_is_refused(tmp_path, build, options, message):
    with pytest.raises(ValueError, match=message):
        build(tmp_path, **options)
