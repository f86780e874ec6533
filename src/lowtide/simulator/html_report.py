"""What shadow and replay found, as one page that needs no other file: for whoever decides
whether to install it."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Final

from lowtide.simulator.rerun_report import Compared
from lowtide.simulator.shadow_report import MOST_DIFFERENCES, ShadowSummary

_STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
th, td { text-align: left; padding: .3rem .7rem; border-bottom: 1px solid #8884; }
thead th { position: sticky; top: 0; background: Canvas; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.claim { font-size: 1.5rem; margin: 1.5rem 0; }
svg { max-width: 100%; height: auto; border-radius: 4px; }
"""


def comparison_page(title: str, rows: Sequence[Compared], chart: str) -> str:
    """`chart` is the text of an SVG, or nothing."""
    figures = [
        (
            row.name,
            *map(str, (row.placed, row.pending, row.evicted)),
            str(len(row.moved_pods)) if number else "",
            *_links(row),
        )
        for number, row in enumerate(rows)
    ]
    headings = (
        *("configuration", "placed", "pending", "evicted", "elsewhere"),
        *("hottest link", "95th percentile", "fairness", "CPU imbalance"),
    )
    parts = [_claim(_hottest_claim(rows)), _table(headings, figures, numbers_from=1), chart]
    for row in rows[1:]:
        parts.append(f"<h2>{escape(row.name)}: pods that would be elsewhere</h2>")
        moved = [
            (each.pod, each.recorded_node or "no node", each.node or "no node", each.reason)
            for each in row.moved_pods[:MOST_DIFFERENCES]
        ]
        if len(moved) < len(row.moved_pods):
            where = "lowtide replay --output json has all of them"
            parts.append(_left_out("first", len(moved), len(row.moved_pods), where))
        parts.append(_table(("pod", "as recorded", "here", "because"), moved))
    return _page(title, parts)


def shadow_page(summary: ShadowSummary) -> str:
    measured, links, agreed = summary.measured, summary.links, summary.agreed_share
    claims = []
    if measured is not None:
        share = f"{measured.peak:.0%} ({measured.peak_node})"
        claims.append(f"Hottest link {share}{measured.averaging}")
    if links is not None:
        claims.append(
            f"With what was just placed {links.hottest:.0%} ({links.hottest_node}) → "
            f"{links.predicted_hottest:.0%} ({links.predicted_hottest_node}) predicted"
        )
    if agreed is not None:
        claims.append(f"{agreed:.1%} of {summary.pods} pods are where these plugins would put them")
    figures = [(name, str(count)) for name, count in summary.agreement.items()]
    differences = [
        (
            *(each.pod, each.node, each.predicted_node or "nowhere"),
            *("" if each.points is None else f"+{each.points}", each.reason),
        )
        for each in summary.differences
    ]
    left_out = []
    if len(differences) < summary.elsewhere:
        where = "with -v 2 lowtide shadow logs each of them"
        left_out = [_left_out("last", len(differences), summary.elsewhere, where)]
    parts = [
        *map(_claim, claims or ["No pod was placed while it looked"]),
        f"<p>{_time(summary.since)} to {_time(summary.until)}, {summary.nodes} nodes.</p>",
        _table(("what the plugins say", "pods"), figures, numbers_from=1),
        "<h2>Pods that would be elsewhere</h2>",
        *left_out,
        _table(("pod", "is on", "would be on", "points", "because"), differences),
    ]
    return _page("Lowtide in the shadow", parts)


def _hottest_claim(rows: Sequence[Compared]) -> str:
    shares = [(row.name, row.links.peak) for row in rows if row.links is not None]
    if not shares:
        return "Nothing was measured"
    averaging = next(row.links.averaging for row in rows if row.links is not None)
    return "Hottest link: " + ", ".join(f"{share:.0%} {name}" for name, share in shares) + averaging


def _links(row: Compared) -> tuple[str, str, str, str]:
    links = row.links
    if links is None:
        return "", "", "", ""
    return (
        f"{links.peak:.0%} ({links.peak_node})",
        f"{links.p95:.0%}",
        f"{links.fairness:.2f}",
        links.cpu_imbalance_in_words,
    )


def _table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], numbers_from: int | None = None
) -> str:
    if not rows:
        return "<p>None.</p>"

    def cells(tag: str, values: Iterable[str]) -> str:
        return "".join(
            f'<{tag} class="number">{escape(value)}</{tag}>'
            if numbers_from is not None and number >= numbers_from
            else f"<{tag}>{escape(value)}</{tag}>"
            for number, value in enumerate(values)
        )

    body = "\n".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    head = f"<thead><tr>{cells('th', headings)}</tr></thead>"
    return f"<table>{head}<tbody>\n{body}\n</tbody></table>"


def _left_out(which: str, shown: int, count: int, where: str) -> str:
    """Above a table: who reads it does not reach the end of it."""
    return f"<p>The {which} {shown} of {count} pods; {escape(where)}.</p>"


def _claim(text: str) -> str:
    return f'<p class="claim">{escape(text)}</p>'


def _page(title: str, parts: Iterable[str]) -> str:
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<h1>{escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
