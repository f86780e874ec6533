"""What plugins answer with, where nothing more is said."""

import numpy as np

from lowtide.framework.plugin import Allow, PostFiltered, Reject, Rejection, Reserved


def test_a_rejection_says_that_eviction_does_not_help_unless_told() -> None:
    assert not Rejection(np.ones(1, np.bool_), "why").eviction_helps


def test_an_answer_is_about_the_pod_alone_unless_it_names_others() -> None:
    assert (Allow().also, Reject("why").also) == (frozenset(), frozenset())


def test_a_reservation_changes_no_objects_and_remembers_nothing_unless_told() -> None:
    assert (tuple(Reserved().objects), Reserved().memory) == ((), None)


def test_what_can_be_done_for_a_pod_is_nothing_unless_told() -> None:
    answer = PostFiltered()
    assert (answer.eviction, answer.nominated_node_name, answer.is_error) == (None, None, False)
