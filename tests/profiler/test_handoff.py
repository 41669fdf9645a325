from profiler.events import Kind, Made, Row
from profiler.handoff import latencies_ns
from profiler.run import columns


def made(batch, end):
    return Made(1, 1, 8, 0, 0, 0, end, 0, 0, 0, 0, 0, 0, batch=batch)


def received(batch, end):
    return Row(Kind.RECEIVE, 0, batch, end - 1, end, 0)


def took(messages, batches):
    return sorted(latencies_ns(columns(Row, messages), columns(Made, batches)).tolist())


def test_a_message_belongs_to_the_batch_of_its_number():
    assert took([received(1, 30), received(0, 50)], [made(0, 20), made(1, 25)]) == [5, 30]


def test_numbers_begin_anew_in_each_epoch():
    assert took([received(0, 30), received(0, 130)], [made(0, 20), made(0, 125)]) == [5, 10]


def test_what_was_not_recorded_is_left_out():
    assert took([received(0, 30), received(7, 40)], [made(0, 20), made(-1, 35), made(3, 50)]) == [10]
    assert took([], []) == []
