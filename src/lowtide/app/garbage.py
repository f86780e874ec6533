"""How often Python looks for garbage, and how the C library keeps what is free, in processes that
keep a whole cluster in memory: set by the scheduler and by the extender."""

import ctypes
import gc

# Nearly all that is thrown away is freed at once, without being looked for. By default Python
# looks after every 700 new objects, and a list of pods or a drain makes very many.
_NEW_OBJECTS = 20_000
_YOUNG_ROUNDS = 20
_MIB = 1024 * 1024
# Numbers of glibc's malloc.h: M_ARENA_MAX, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD. With half a MiB for
# both, a decision of which nothing is kept took a tenth longer at 5000 nodes: its arrays were given
# back and asked for again each time.
_HEAP_OPTIONS = {-8: 1, -3: 4 * _MIB, -1: 16 * _MIB}


def look_seldom_for_garbage() -> None:
    """From the start: to decode the lists makes millions of objects that stay."""
    gc.set_threshold(_NEW_OBJECTS, _YOUNG_ROUNDS, _YOUNG_ROUNDS)


def give_back_what_is_free() -> None:
    """Python's large objects (arrays, lists, what was received) are the C library's. By default it
    has a heap for each thread, and from the first large piece that was freed on it takes such
    pieces from there too: where pods come and go, the holes between them grew for hours. Other
    libraries than glibc have no such settings, and are left alone."""
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is None:
        return
    for option, value in _HEAP_OPTIONS.items():
        set_option(option, value)


def give_back_holes() -> None:
    """After work that took much memory for a moment: also the free pages between what stays."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def leave_out_what_is_known() -> None:
    """What is known by now stays for long. To look through all of it time and again would stop
    every thread for 150 ms with 5000 nodes; once before this too, and hardly any is garbage."""
    gc.freeze()
