"""How Python looks for garbage, and what becomes of memory that is free; each test puts the process
back as it was."""

import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest

from lowtide.app.garbage import leave_out_what_is_known, look_seldom_for_garbage


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def test_garbage_is_looked_for_seldom() -> None:
    look_seldom_for_garbage()
    assert gc.get_threshold() == (20_000, 20, 20)


def test_what_is_known_is_looked_through_no_more() -> None:
    known = [[number] for number in range(1000)]
    leave_out_what_is_known()
    assert gc.get_freeze_count() >= len(known)


# Large pieces with small ones between them that stay, after a larger one was freed: by default
# glibc then keeps the holes.
HOLES = """
import os
from lowtide.app.garbage import give_back_what_is_free

def resident_mib():
    with open("/proc/self/statm") as told:
        return int(told.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

give_back_what_is_free()
del bytearray(24 * 2**20)[:]
before = resident_mib()
pieces, small = [], []
for _ in range(8):
    pieces.append(bytearray(b"x") * 5 * 2**20)
    small.append(bytearray(4096))
most = resident_mib()
pieces.clear()
print(most - before, resident_mib() - before)
"""


def test_large_pieces_that_are_free_are_given_back() -> None:
    done = subprocess.run([sys.executable, "-c", HOLES], capture_output=True, text=True, check=True)
    taken, kept = map(float, done.stdout.split())
    assert taken > 35
    assert kept < 5


def test_holes_between_what_stays_are_given_back_on_demand() -> None:
    small_pieces = HOLES.replace("range(8)", "range(40)").replace('b"x") * 5', 'b"x")')
    asked = small_pieces.replace("pieces.clear()", "pieces.clear()\ngarbage.give_back_holes()")
    program = "from lowtide.app import garbage\n" + asked
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    taken, kept = map(float, done.stdout.split())
    assert taken > 35
    assert kept < 5
