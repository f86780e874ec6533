"""What is wrong with the JSON of a request, in one sentence that names the field, its value and
what would be right. Used where requests are decoded."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

# What decoding raises of bytes that are UTF-8.
UNREADABLE: Final = (msgspec.DecodeError, RecursionError)

_PROBLEM = re.compile(r"(?P<problem>.*?)(?: - at `\$(?P<path>[^`]*)`)?", re.DOTALL)
_EXPECTED = re.compile(
    r"Expected `(?P<right>[^`]+)`(?P<limit> [<>]= -?\d+)?(?:, got `(?P<got>[^`]+)`)?"
)
_MISSING = re.compile(r"Object missing required field `(?P<name>[^`]+)`")
_STEP = re.compile(r"\.[^.\[]+|\[[^\]]+\]")
_ANY_KEY = "[...]"
_RIGHT = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "object": "an object",
    "str": "a string",
}
_LONGEST_VALUE = 60
_MOST_SEARCHED_BYTES = 256 * 1024


class BadRequestError(Exception):
    """A request cannot be answered; its text is one sentence for whoever sent it."""

    status = 400
    reason = "unreadable"  # a word for /metrics


class TooMuchAskedError(BadRequestError):
    status = 413
    reason = "too-large"


def why_unreadable(error: Exception, data: Any, *, at: str, right: str) -> BadRequestError:
    """`data` is the JSON of what stands at `at`, empty for the body; `right` is what fits there."""
    if not memoryview(data):
        return BadRequestError(f"{at or 'the body'} is empty; expected {right}")
    if isinstance(error, RecursionError):
        return BadRequestError(f"{at or 'the body'} is nested too deeply; expected {right}")
    if not isinstance(error, msgspec.ValidationError):
        problem = _lowered(str(error).removeprefix("JSON is malformed: "))
        return BadRequestError(f"{at or 'the body'} is not JSON: {problem}; expected {right}")
    if "out of range" in str(error) and isinstance(error.__context__, msgspec.ValidationError):
        # Without types no number is found that large; the reading before this one knew the field.
        error = error.__context__
    return BadRequestError(_why_not_fitting(str(error), data, at, right))


def shown(value: Any) -> str:
    """A value as JSON, cut where it is long."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def _why_not_fitting(error: str, data: Any, at: str, right: str) -> str:
    split = _PROBLEM.fullmatch(error)
    problem, path = (error, "") if split is None else (split["problem"], split["path"] or "")
    missing = _MISSING.fullmatch(problem)
    if missing is not None:
        where = f"{at}{path}".lstrip(".")
        return f"{where or 'the body'} has no {missing['name']}; expected {right}"
    expected = _EXPECTED.fullmatch(problem)
    place, value = _place(data, _STEP.findall(path), expected["got"] if expected else None)
    name = f"{at}{place or path}".lstrip(".") or "the body"
    if expected is None:
        return f"{name} cannot be read: {_lowered(problem)}"
    wanted = right if name == "the body" else _wanted(expected["right"]) + (expected["limit"] or "")
    if place is None:
        return f"{name} cannot be read; expected {wanted}"
    return f"{name} is {value}; expected {wanted}"


def _lowered(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _wanted(types: str) -> str:
    names = [_RIGHT.get(each, each) for each in types.split(" | ") if each != "null"]
    *others, last = names or ["null"]
    return f"{', '.join(others)} or {last}" if others else last


def _place(data: Any, steps: Sequence[str], got: str | None) -> tuple[str | None, str]:
    """Where the value is that does not fit, and the value; msgspec leaves keys out of paths.

    Not of a large body: read without types, it takes many times its bytes."""
    if memoryview(data).nbytes > _MOST_SEARCHED_BYTES:
        return None, ""
    try:
        places = list(_places(msgspec.json.decode(data), steps, ""))
    except UNREADABLE:
        return None, ""
    fitting = [each for each in places if got is None or _type_name(each[1]) == got]
    for path, value in fitting[:1]:
        return path, shown(value)
    return None, ""


def _places(value: Any, steps: Sequence[str], path: str) -> Iterator[tuple[str, Any]]:
    if not steps:
        yield path, value
        return
    step, rest = steps[0], steps[1:]
    if step == _ANY_KEY and isinstance(value, dict):
        for key, each in value.items():
            yield from _places(each, rest, f"{path}[{shown(key)}]")
    elif step.startswith("[") and isinstance(value, list):
        for each in value[int(step[1:-1]) :][:1]:
            yield from _places(each, rest, path + step)
    elif step.startswith(".") and isinstance(value, dict):
        for key in _spellings(value, step[1:])[:1]:
            yield from _places(value[key], rest, path + step)


def _spellings(given: dict[str, Any], name: str) -> list[str]:
    if name in given:
        return [name]
    return [key for key in reversed(given) if key.casefold() == name.casefold()]


def _type_name(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool() | int() | float() | str():
            return type(value).__name__
        case list():
            return "array"
        case _:
            return "object"
