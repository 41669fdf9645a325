from pathlib import Path

from profiler.places import cache_dir


def test_samples_lie_where_the_user_says_else_where_caches_lie():
    assert cache_dir({"STALLSCOPE_CACHE": "/big/disk", "XDG_CACHE_HOME": "/x"}) == Path("/big/disk")
    assert cache_dir({"XDG_CACHE_HOME": "/x"}) == Path("/x/stallscope")
    assert cache_dir({"XDG_CACHE_HOME": "relative"}) == cache_dir({}) == Path.home() / ".cache" / "stallscope"
