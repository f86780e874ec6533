"""Draws stacks as an SVG that a browser opens by itself: a click on a frame makes it as wide as
the picture, a click on the top line shows all again. Used by flame."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape

WIDTH = 1400
ROW_HEIGHT = 18
LETTER_WIDTH = 6.6
NARROWEST = 0.4
LEGEND_HEIGHT = 26

# By the room that the function is in; the rest is grey.
COLOURS = {
    "lowtide.plugins": "#f2a65a",
    "lowtide.framework": "#e8837a",
    "lowtide.cluster": "#8fbf7f",
    "lowtide.scheduler": "#7fb2d9",
    "lowtide.kube": "#b79fd9",
    "lowtide.objects": "#d9c97f",
    "lowtide.app": "#d99fc4",
    "numpy": "#7fc9c1",
}
OTHER_COLOUR = "#cccccc"

SCRIPT = """
const frames = [...document.querySelectorAll("g.frame")];
function show(left, width, depth) {
  for (const frame of frames) {
    const [x, w, d] = ["x", "w", "d"].map((name) => Number(frame.dataset[name]));
    const covers = x <= left + 1e-9 && x + w >= left + width - 1e-9;
    const isIn = x >= left - 1e-9 && x + w <= left + width + 1e-9;
    if (!(d < depth ? covers : isIn)) { frame.style.display = "none"; continue; }
    const from = d < depth ? 0 : (x - left) / width * WIDTH;
    const wide = d < depth ? WIDTH : w / width * WIDTH;
    frame.style.display = wide < NARROWEST ? "none" : "";
    const rect = frame.querySelector("rect"), text = frame.querySelector("text");
    rect.setAttribute("x", from);
    rect.setAttribute("width", wide);
    text.setAttribute("x", from + 3);
    const letters = Math.floor((wide - 6) / LETTER), name = frame.dataset.name;
    text.textContent = letters < 3 ? "" : name.length <= letters ? name
      : name.slice(0, letters - 1) + "…";
  }
}
for (const frame of frames) {
  frame.addEventListener("click", () => {
    show(Number(frame.dataset.x), Number(frame.dataset.w), Number(frame.dataset.d));
  });
}
show(0, 1, 0);
"""


@dataclass(slots=True)
class _Frame:
    looks: int = 0
    inside: dict[str, "_Frame"] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Box:
    """`left` and `width` are shares of the picture's."""

    name: str
    depth: int
    left: float
    width: float
    looks: int


def flame_svg(stacks: Mapping[tuple[str, ...], int]) -> str:
    boxes = [each for each in _boxes(_tree(stacks)) if each.width * WIDTH >= NARROWEST / 20]
    height = LEGEND_HEIGHT + ROW_HEIGHT * (1 + max(each.depth for each in boxes))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"'
            f' viewBox="0 0 {WIDTH} {height}" font-family="monospace" font-size="11">',
            "<style>g.frame{cursor:pointer} g.frame:hover rect{stroke:#000}</style>",
            f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
            *_legend(),
            *(_drawn(box, looks=boxes[0].looks) for box in boxes),
            f"<script><![CDATA[const WIDTH = {WIDTH}, LETTER = {LETTER_WIDTH}, "
            f"NARROWEST = {NARROWEST};{SCRIPT}]]></script>",
            "</svg>\n",
        ]
    )


def _tree(stacks: Mapping[tuple[str, ...], int]) -> _Frame:
    root = _Frame()
    for stack, looks in stacks.items():
        frame = root
        frame.looks += looks
        for name in stack:
            frame = frame.inside.setdefault(name, _Frame())
            frame.looks += looks
    return root


def _boxes(root: _Frame) -> Iterator[_Box]:
    """Whoever holds others comes before them; the widest is on the left."""
    waiting = [("all", root, 0, 0.0)]
    while waiting:
        name, frame, depth, left = waiting.pop()
        yield _Box(name, depth, left, frame.looks / root.looks, frame.looks)
        for inner_name, inner in sorted(frame.inside.items(), key=lambda each: -each[1].looks):
            waiting.append((inner_name, inner, depth + 1, left))
            left += inner.looks / root.looks


def _drawn(box: _Box, *, looks: int) -> str:
    left, width = box.left * WIDTH, box.width * WIDTH
    top = LEGEND_HEIGHT + ROW_HEIGHT * box.depth
    letters = int((width - 6) / LETTER_WIDTH)
    name = _short(box.name)
    shown = "" if letters < 3 else name if len(name) <= letters else f"{name[: letters - 1]}…"
    told = f"{box.name}: {100 * box.looks / looks:.1f} % ({box.looks} of {looks} looks)"
    # Without the script, what is too narrow to be seen would only blur the picture.
    hidden = ' style="display:none"' if width < NARROWEST else ""
    return (
        f'<g class="frame"{hidden} data-x="{box.left:.9f}" data-w="{box.width:.9f}"'
        f' data-d="{box.depth}" data-name="{escape(name)}"><title>{escape(told)}</title>'
        f'<rect x="{left:.2f}" y="{top}" width="{width:.2f}" height="{ROW_HEIGHT - 1}"'
        f' fill="{_colour(box.name)}" rx="2"/>'
        f'<text x="{left + 3:.2f}" y="{top + 13}">{escape(shown)}</text></g>'
    )


def _legend() -> Iterator[str]:
    left = 4.0
    for room, colour in (*COLOURS.items(), ("others", OTHER_COLOUR)):
        yield f'<rect x="{left:.0f}" y="6" width="12" height="12" fill="{colour}"/>'
        yield f'<text x="{left + 16:.0f}" y="16">{room}</text>'
        left += 30 + LETTER_WIDTH * len(room)


def _colour(name: str) -> str:
    module = name.partition(":")[0]
    for room, colour in COLOURS.items():
        if module == room or module.startswith(f"{room}."):
            return colour
    return OTHER_COLOUR


def _short(name: str) -> str:
    """Without the package: a module's last word and the function."""
    module, _, function = name.partition(":")
    return f"{module.rpartition('.')[2]}:{function}" if function else name
