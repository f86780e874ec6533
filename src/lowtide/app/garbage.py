"""How often Python looks for garbage, in processes that keep a whole cluster in memory: set by the
scheduler and by the extender."""

import gc

# Nearly all that is thrown away is freed at once, without being looked for. By default Python
# looks after every 700 new objects, and a list of pods or a drain makes very many.
_NEW_OBJECTS = 20_000
_YOUNG_ROUNDS = 20


def look_seldom_for_garbage() -> None:
    """From the start: to decode the lists makes millions of objects that stay."""
    gc.set_threshold(_NEW_OBJECTS, _YOUNG_ROUNDS, _YOUNG_ROUNDS)


def leave_out_what_is_known() -> None:
    """What is known by now stays for long. To look through all of it time and again would stop
    every thread for 150 ms with 5000 nodes; once before this too, and hardly any is garbage."""
    gc.freeze()
