import asyncio
import re
import threading
from collections.abc import AsyncIterator

from lowtide.server.stacks import stacks_text


async def waits_deep_down(gate: asyncio.Event) -> None:
    await waits_at_the_gate(gate)


async def waits_at_the_gate(gate: asyncio.Event) -> None:
    await gate.wait()


async def yields_one_by_one(gate: asyncio.Event) -> None:
    async for _ in gate_keeper(gate):
        pass


async def gate_keeper(gate: asyncio.Event) -> AsyncIterator[int]:
    await gate.wait()
    yield 1


def functions_by_title(text: str) -> dict[str, list[str]]:
    """The functions of each stack, the outermost first, by the line above them."""
    stacks: dict[str, list[str]] = {}
    title = ""
    for line in text.splitlines():
        found = re.match(r'  File ".*", line \d+, in (\w+)$', line)
        if found:
            stacks[title].append(found[1])
        elif line and not line.startswith(" "):
            title = line
            stacks[title] = []
    return stacks


async def test_tasks_are_told_down_to_where_they_wait() -> None:
    gate = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        deep = tasks.create_task(waits_deep_down(gate), name="deep")
        flat = tasks.create_task(yields_one_by_one(gate), name="flat")
        not_begun = tasks.create_task(waits_at_the_gate(gate), name="not begun")
        await asyncio.sleep(0)
        text = stacks_text([flat, not_begun, deep])
        gate.set()
    told = functions_by_title(text)
    assert list(told)[:4] == [
        "3 tasks",
        "task deep: waits_deep_down",
        "task flat: yields_one_by_one",
        "task not begun: waits_at_the_gate",
    ]
    assert told["task deep: waits_deep_down"] == ["waits_deep_down", "waits_at_the_gate", "wait"]
    assert told["task flat: yields_one_by_one"][0] == "yields_one_by_one"


async def test_a_task_that_runs_and_one_that_has_ended_are_told_too() -> None:
    ended = asyncio.create_task(asyncio.sleep(0), name="ended")
    await ended
    this = asyncio.current_task()
    assert this is not None
    this.set_name("this")
    text = stacks_text([ended, this])
    assert "task ended: sleep\n  (its frames are not Python's)\n" in text
    title = "task this: test_a_task_that_runs_and_one_that_has_ended_are_told_too"
    assert functions_by_title(text)[title] == [title.partition(": ")[2]]


def test_threads_are_told_from_their_first_call_to_their_last() -> None:
    is_begun, may_end = threading.Event(), threading.Event()

    def works() -> None:
        is_begun.set()
        may_end.wait()

    thread = threading.Thread(target=works, name="worker")
    thread.start()
    is_begun.wait()
    told = functions_by_title(stacks_text([]))
    may_end.set()
    thread.join()
    # The first two are those of threading itself.
    assert told["thread worker"][2:4] == ["run", "works"]
    assert told["thread MainThread"][-1] == "stacks_text"
