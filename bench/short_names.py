"""Names of benchmarks, which are words between slashes, told in few lines.

`make bench` says them in its help, and where a name is none."""

from collections.abc import Iterable, Iterator


def short_names(names: Iterable[str]) -> Iterator[str]:
    """`drain/{basic, fair}/{5000, 1000}`; single words are on a line of their own."""
    single: list[str] = []
    for first, rests in _by_first_word(names).items():
        if rests == ("",):
            single.append(first)
        else:
            yield from (f"{first}/{rest}" for rest in _joined(rests))
    if single:
        yield ", ".join(single)


def _joined(names: Iterable[str]) -> Iterator[str]:
    """Words that the same follows are told together."""
    words_before: dict[tuple[str, ...], list[str]] = {}
    for word, rests in _by_first_word(names).items():
        words_before.setdefault(rests, []).append(word)
    for rests, words in words_before.items():
        braced = words[0] if len(words) == 1 else f"{{{', '.join(words)}}}"
        for rest in ("",) if rests == ("",) else _joined(rests):
            yield f"{braced}/{rest}".rstrip("/")


def _by_first_word(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name in names:
        word, _, rest = name.partition("/")
        found[word] = (*found.get(word, ()), rest)
    return found
