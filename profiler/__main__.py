"""`python -m profiler` (in a checkout) and `python -m stallscope` (installed)."""

if __name__ == "__main__":
    import importlib
    import importlib.util
    import pathlib
    import sys

    here = pathlib.Path(__file__).resolve().parent
    installed = importlib.util.find_spec("stallscope")
    places = [pathlib.Path(place).resolve() for place in (installed and installed.submodule_search_locations) or ()]
    # With an editable install this checkout has two names. Under both at once there would be two of every class.
    package = "stallscope" if here in places else __package__
    sys.exit(importlib.import_module(f"{package}.cli").main(program=f"python -m {__package__}"))
