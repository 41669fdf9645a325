"""For imports_in_every_worker: a module of a user's that does its work when it is imported."""

from costs import wait

wait(1600)  # reads a table, asks a server, compiles patterns ...


def encode(number):
    return float(number)
