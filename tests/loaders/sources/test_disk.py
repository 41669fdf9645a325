"""What the kernel says of a disk, read from a made-up /proc and /sys, and what is measured of the real one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loaders.sources import _disk, _files

MOUNTS = r"""21 1 8:2 / / rw,relatime shared:1 - ext4 /dev/root rw
22 21 0:5 / /proc rw - proc proc rw
30 21 254:0 / /data\040sets rw shared:2 master:1 - xfs /dev/vda rw
31 30 0:40 / /data\040sets/fast rw - tmpfs tmpfs rw
32 30 259:1 / /data\040sets/fast rw - ext4 /dev/nvme0n1p1 rw
33 21 253:0 / /crypt rw - ext4 /dev/mapper/home rw
34 21 7:1 / /cloud rw - ext4 /dev/nvme1n1 rw
"""


@pytest.fixture
def machine(tmp_path: Path) -> tuple[Path, Path]:
    """mountinfo and sysfs of a machine with a real disk and several virtual ones."""
    mountinfo, sysfs = tmp_path / "mountinfo", tmp_path / "sys"
    mountinfo.write_text(MOUNTS)
    (sysfs / "dev/block").mkdir(parents=True)
    for number, device, rotational, model in (
        ("8:2", "pci0/block/sda/sda2", "1", "WDC WD40EFRX"),
        ("254:0", "pci0/virtio3/block/vda", "1", ""),
        ("259:1", "pci0/nvme/nvme0n1/nvme0n1p1", "0", "Samsung SSD 990"),
        ("253:0", "virtual/block/dm-0", "0", ""),
        ("7:1", "pci0/nvme/nvme1n1", "0", "Amazon Elastic Block Store"),
    ):
        node = sysfs / "devices" / device
        node.mkdir(parents=True)
        (sysfs / "dev/block" / number).symlink_to(node)
        disk = node
        if node.name in ("sda2", "nvme0n1p1"):
            (node / "partition").write_text("1\n")
            disk = node.parent
        (disk / "queue").mkdir()
        (disk / "queue/rotational").write_text(f"{rotational}\n")
        (disk / "device").mkdir()
        (disk / "device/model").write_text(f"{model}\n")
    return mountinfo, sysfs


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/home/me", ("ext4", "/", "sda", False, True)),
        ("/data sets/slow", ("xfs", "/data sets", "vda", True, True)),
        ("/data sets/fast/not/there", ("ext4", "/data sets/fast", "nvme0n1", False, False)),
        ("/data setsX", ("ext4", "/", "sda", False, True)),
        ("/crypt", ("ext4", "/crypt", "dm-0", True, False)),
        ("/cloud", ("ext4", "/cloud", "nvme1n1", True, False)),
        ("/proc/1", ("proc", "/proc", None, None, None)),
    ],
)
def test_a_disk_is_told_by_the_longest_and_last_mount(
    path: str, expected: tuple[object, ...], machine: tuple[Path, Path]
) -> None:
    assert tuple(_disk.identify(Path(path), *machine).values()) == expected


def test_where_there_is_no_proc_nothing_is_known(tmp_path: Path) -> None:
    disk = _disk.identify(tmp_path, tmp_path / "mountinfo", tmp_path / "sys")
    assert set(disk.values()) == {None}
    assert _disk.label(disk) == "an unknown file system"


def test_a_label_says_what_is_virtual() -> None:
    disk = {"file_system": "ext4", "device": "vda", "virtual": True}
    assert _disk.label(disk) == "ext4 /dev/vda (virtual)"
    assert _disk.label(disk | {"virtual": False}) == "ext4 /dev/vda"
    assert _disk.label({"file_system": "nfs4", "device": None, "virtual": None}) == "nfs4"


def test_a_disk_is_measured_cold(tmp_path: Path) -> None:
    if _disk.identify(tmp_path)["file_system"] in (None, "tmpfs", "ramfs"):
        pytest.skip(f"needs a folder on a disk; {tmp_path} lies in memory")
    _files.write_missing(tmp_path, 12, lambda done, total: None)
    names = _files.JpegFiles(tmp_path, 12, 64).names()
    measured = _disk.measure(names)
    sequential, p50, p95 = measured.values()
    assert sequential
    assert p50
    assert p95
    assert p50 <= p95
    assert _files.resident_share(names) == 1.0, "the sequential pass leaves the files where they were"
    json.dumps(measured)


def test_what_stays_in_memory_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(bytes(100_000))
    for resident in (1.0, None):
        monkeypatch.setattr(_disk, "resident_share", lambda names, share=resident: share)
        assert _disk.measure([str(tmp_path / "file")]) == _disk.NOT_MEASURED
