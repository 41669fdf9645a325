import platform

import pytest

from profiler.ranks import identity

ALONE = {"global_rank": 0, "local_rank": 0, "world_size": 1, "host": platform.node()}
TORCHRUN = {"RANK": "5", "LOCAL_RANK": "1", "WORLD_SIZE": "8"}
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "6", "OMPI_COMM_WORLD_LOCAL_RANK": "2", "OMPI_COMM_WORLD_SIZE": "12"}
SLURM = {"SLURM_PROCID": "7", "SLURM_LOCALID": "3", "SLURM_NTASKS": "16"}


def test_alone():
    assert identity({}) == ALONE


@pytest.mark.parametrize(
    ("environ", "expected"),
    [(TORCHRUN, (5, 1, 8)), (OPEN_MPI, (6, 2, 12)), (SLURM, (7, 3, 16))],
    ids=["torchrun", "open_mpi", "slurm"],
)
def test_each_launcher(environ, expected):
    who = identity(environ)
    assert (who["global_rank"], who["local_rank"], who["world_size"]) == expected
    assert who["host"] == platform.node()


def test_the_innermost_launcher_speaks():
    assert identity(SLURM | OPEN_MPI | TORCHRUN)["global_rank"] == 5
    assert identity(SLURM | OPEN_MPI)["global_rank"] == 6


def test_half_a_launcher_is_none():
    assert identity({"RANK": "5"}) == ALONE
    assert identity({"RANK": "5"} | SLURM)["global_rank"] == 7


def test_a_local_rank_that_is_not_told_is_not_zero():
    assert identity({"RANK": "1", "WORLD_SIZE": "2"})["local_rank"] is None


@pytest.mark.parametrize("rank", ["", "high", "-1", "1.0", "²", "8"])
def test_a_variable_of_the_users_own_is_no_rank(rank):
    assert identity({"RANK": rank, "LOCAL_RANK": "0", "WORLD_SIZE": "8"}) == ALONE
