"""Whatever is sent to the extender, it answers in time, never with 500, and goes on as before."""

import asyncio
import contextlib
import gc
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
import uvloop
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.properties.extender_under_fire import CORPUS, UnderFire
from tests.properties.request_mutations import Mutator
from tests.server.recorded_extender import Recorded

from lowtide.server.bad_request import BadRequestError
from lowtide.server.extender_requests import (
    NodesRequest,
    binding_request,
    nodes_request,
    preemption_request,
    quick_nodes_request,
    read_names,
)
from lowtide.server.name_lists import NameLists

LISTS = NameLists(read_names)


def by_names_or_nodes(body: bytes) -> NodesRequest:
    quick = quick_nodes_request(body, LISTS)
    return nodes_request(body) if quick is None else quick


DECODED_BY = {
    "filter": by_names_or_nodes,
    "prioritize": by_names_or_nodes,
    "preempt": preemption_request,
    "bind": binding_request,
}
# Amounts near 2^63 add up to more; what is added so is taken away again so.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

MOST_GROWTH_BYTES = 16 * 1024 * 1024
REQUESTS_PER_BATCH = 200


@pytest.fixture(autouse=True)
def no_log_lines() -> Iterator[None]:
    """pytest would keep them all, and that is memory which grows."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(recorded=st.sampled_from(CORPUS), random=st.randoms(use_true_random=False))
def test_any_body_is_a_question_or_a_bad_request(recorded: Recorded, random: Random) -> None:
    body = Mutator(random).mutated(recorded.body)
    with contextlib.suppress(BadRequestError):
        DECODED_BY[recorded.verb](body)


def test_mutated_requests_do_no_harm() -> None:
    fire(batches=10)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_hundred_thousand_mutated_requests_do_no_harm() -> None:
    memory = fire(batches=500, signatures=3000)
    assert memory[100_000] - memory[20_000] < MOST_GROWTH_BYTES, memory


def fire(*, batches: int, signatures: int = 0) -> dict[int, int]:
    """The bytes in memory after each 20,000 requests."""
    memory: dict[int, int] = {}
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        stack = UnderFire.started()
        under_fire = runner.run(stack.__aenter__())
        try:
            runner.run(under_fire.fill_what_is_kept(signatures))
            before = runner.run(under_fire.answers_to_the_corpus())

            @settings(
                max_examples=batches,
                deadline=None,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(seed=st.integers(0, 2**64 - 1))
            def one_batch(seed: int) -> None:
                runner.run(under_fire.batch(seed, REQUESTS_PER_BATCH))
                sent = under_fire.statuses.total()
                if sent % 20_000 == 0:
                    memory[sent] = _resident_bytes()

            one_batch()
            assert under_fire.statuses.total() == batches * REQUESTS_PER_BATCH
            assert runner.run(under_fire.answers_to_the_corpus()) == before
            assert {*under_fire.statuses} >= {200, 400, 404, 405}
            print(f"{dict(under_fire.statuses)} {under_fire.counts} bytes in memory: {memory}")
        finally:
            runner.run(stack.__aexit__(None, None, None))
    return memory


def _resident_bytes() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
