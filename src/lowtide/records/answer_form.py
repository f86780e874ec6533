"""What extenders answered, as a recording keeps it. Used by `event_form`."""

import msgspec

from lowtide.records.hashed_names import HashedNames
from lowtide.scheduler.extending import Answer, ExtenderFailed, Filtered, Preempted, Priorities


class FilteredForm(msgspec.Struct, frozen=True, tag="Filtered", omit_defaults=True):
    kept: list[str]
    failed: dict[str, str] = {}
    unresolvable: dict[str, str] = {}


class PrioritiesForm(msgspec.Struct, frozen=True, tag="Priorities"):
    by_extender: list[dict[str, int]]


class PreemptedForm(msgspec.Struct, frozen=True, tag="Preempted"):
    """By node: uids, and how many budgets are violated."""

    victims: dict[str, tuple[list[str], int]]


class FailedForm(msgspec.Struct, frozen=True, tag="ExtenderFailed"):
    error: str


AnswerForm = FilteredForm | PrioritiesForm | PreemptedForm | FailedForm


def form_of_answer(answer: Answer, hashed: HashedNames | None) -> AnswerForm:
    name = (lambda text: text) if hashed is None else hashed.name
    # Where names are hashed, a reason stays the same reason and says nothing else.
    words = (lambda text: text) if hashed is None else hashed.whole
    uid = (lambda text: text) if hashed is None else hashed.uid
    match answer:
        case Filtered(kept, failed, unresolvable):
            return FilteredForm(
                [name(each) for each in kept],
                {name(node): words(reason) for node, reason in failed.items()},
                {name(node): words(reason) for node, reason in unresolvable.items()},
            )
        case Priorities(by_extender):
            return PrioritiesForm(
                [{name(node): points for node, points in each.items()} for each in by_extender]
            )
        case Preempted(victims):
            return PreemptedForm(
                {
                    name(node): ([uid(one) for one in uids], count)
                    for node, (uids, count) in victims.items()
                }
            )
        case ExtenderFailed(error):
            return FailedForm(words(error))


def answer_of(form: AnswerForm) -> Answer:
    match form:
        case FilteredForm():
            return Filtered(tuple(form.kept), form.failed, form.unresolvable)
        case PrioritiesForm():
            return Priorities(tuple(form.by_extender))
        case PreemptedForm():
            victims = {node: (tuple(uids), count) for node, (uids, count) in form.victims.items()}
            return Preempted(victims)
        case FailedForm():
            return ExtenderFailed(form.error)
