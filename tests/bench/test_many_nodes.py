"""What the benchmarks without a server have in common: what is measured there, and how memory is
kept."""

import gc

import numpy as np

from lowtide.app.garbage import look_seldom_for_garbage
from lowtide.readings.request import RECEIVE, TRANSMIT
from lowtide.testing import make_node
from many_nodes import LINK_BYTES_PER_SECOND, Readings, make_machine, node_address, node_name
from preempt import preempt


def test_what_is_published_is_a_reading_of_all_nodes_of_the_machine() -> None:
    nodes = [make_node(node_name(each), addresses=[node_address(each)]) for each in range(3)]
    machine = make_machine("http://127.0.0.1:9090", nodes)
    readings = Readings(machine)
    first, second = (readings.published_at(now).reading for now in (1000.0, 1015.0))
    assert list(first.names) == list(second.names) == [node.name for node in nodes]
    for name in (RECEIVE, TRANSMIT):
        carried = np.array([first.columns[name], second.columns[name]]) / LINK_BYTES_PER_SECOND
        assert ((carried > 0.05) & (carried < 0.6)).all()
        assert (carried[0] != carried[1]).all()


def test_preemption_is_measured_with_memory_kept_as_in_the_scheduler() -> None:
    look_seldom_for_garbage()
    in_the_scheduler = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    next(preempt(1, lambda line: None))
    assert gc.get_threshold() == in_the_scheduler
    assert gc.get_freeze_count() > 0
