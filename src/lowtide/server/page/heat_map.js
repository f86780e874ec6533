// The cluster as a heat map: one canvas with the cells, drawn when data change, and one above it
// with the marks of pointer, keyboard and selection, which is all that an interaction redraws.

import {cellAt, cornerOf, layOut, moved, placeOf, rowAt, TITLE_PX} from "./heat_layout.js";
import {hatching, palette, stepOf} from "./heat_colours.js";
import {byId, setText} from "./elements.js";
import {hideTip, showTip} from "./tooltip.js";

const NAME_FROM_PX = 96;
const FIGURE_FROM_PX = 38;
const FONT = "11px system-ui, sans-serif";
// All around, for the marks of the outermost cells.
const MARGIN_PX = 3;

export class HeatMap {
  // `words(row)` gives [title, lines] about a node, `opened(name)` is told which one is chosen.
  constructor(words, opened) {
    this.words = words;
    this.opened = opened;
    this.frame = byId("heat");
    this.cells = byId("heat-cells");
    this.marks = byId("heat-marks");
    this.cluster = null;
    this.layout = null;
    this.groupBy = "zones";
    this.orderBy = "name";
    this.pointed = null;
    this.pointer = [0, 0];
    this.cursor = null; // the row that the keyboard is on
    this.chosenName = null;
    this.size = "";
    this.laidOutFor = "";
    this.listen();
  }

  show(cluster) {
    const before = this.cluster;
    this.cluster = cluster;
    if (before && before.names !== cluster.names && this.cursor !== null) {
      const row = cluster.names.indexOf(before.names[this.cursor]);
      this.cursor = row < 0 ? null : row;
    }
    if (!before || !looksTheSame(before, cluster)) this.arrange();
    if (this.pointed) this.tellPointed(); // a pointer that rests
  }

  arrangeBy(groupBy, orderBy) {
    this.groupBy = groupBy;
    this.orderBy = orderBy;
    this.arrange();
  }

  choose(name) {
    this.chosenName = name;
    if (this.layout) this.drawMarks();
  }

  // After the colours or the room changed.
  arrange() {
    const width = this.frame.clientWidth - 2 * MARGIN_PX;
    if (!this.cluster || width <= 0) return;
    this.layout = this.laidOut(width, mostHeightPx());
    // No higher than a few nodes need; more than fit are scrolled.
    this.frame.style.height = `${Math.min(this.layout.heightPx, mostHeightPx()) + 2 * MARGIN_PX}px`;
    for (const canvas of [this.cells, this.marks]) sizeCanvas(canvas, width, this.layout.heightPx);
    this.drawCells();
    this.drawMarks();
  }

  // Another order of the same groups needs no other places.
  laidOut(width, height) {
    const groups = this.groups();
    const kind = `${this.cluster.version} ${this.groupBy} ${width} ${height}`;
    if (kind !== this.laidOutFor) {
      this.laidOutFor = kind;
      return layOut(groups, width, height);
    }
    const blocks = this.layout.blocks.map((block, at) => ({...block, rows: groups[at].rows}));
    return {...this.layout, blocks};
  }

  groups() {
    const {nameOrder, share} = this.cluster;
    const order = this.orderBy === "share"
      ? nameOrder.toSorted((a, b) => (share[b] ?? -1) - (share[a] ?? -1))
      : nameOrder;
    if (!this.groupBy) return [{title: "", rows: order}];
    const titles = this.cluster[this.groupBy];
    const byTitle = new Map();
    for (const row of order) {
      const title = titles[row] || "";
      if (!byTitle.has(title)) byTitle.set(title, []);
      byTitle.get(title).push(row);
    }
    const word = {zones: "zone", racks: "rack"}[this.groupBy];
    return [...byTitle]
      .map(([title, rows]) => ({title: title || `no ${word} known`, rows}))
      .sort((a, b) => a.title.localeCompare(b.title, "en", {numeric: true}));
  }

  drawCells() {
    const context = this.cells.getContext("2d");
    const colours = palette();
    const {cellWidth, cellHeight, blocks, titlePx} = this.layout;
    const gap = cellWidth >= 10 ? 1 : cellWidth >= 6 ? 0.5 : 0;
    const pattern = hatching(context, colours.hatch);
    const hot = [];
    const {share, state, is_hot: isHot} = this.cluster;
    clear(context);
    context.font = FONT;
    context.textBaseline = "middle";
    for (const block of blocks) {
      let before = null;
      if (titlePx) {
        context.fillStyle = colours.dim;
        const counted = `${block.title} · ${block.rows.length}`;
        const told = context.measureText(counted).width <= block.width ? counted : clipped(context, block.title, block.width);
        context.fillText(told, block.x, block.y + TITLE_PX / 2);
      }
      for (let index = 0; index < block.rows.length; index += 1) {
        const row = block.rows[index];
        const x = block.x + (index % block.across) * cellWidth;
        const y = block.top + Math.floor(index / block.across) * cellHeight;
        const known = share[row] !== null;
        const step = known ? stepOf(share[row]) : 0;
        const colour = known ? colours.steps[step] : colours.unknown;
        if (colour !== before) context.fillStyle = before = colour; // to set it costs more than to fill
        context.fillRect(x, y, cellWidth - gap, cellHeight - gap);
        if (state[row] !== "f") {
          context.fillStyle = pattern;
          context.fillRect(x, y, cellWidth - gap, cellHeight - gap);
          before = null;
        }
        if (isHot[row] === "1") hot.push(x, y);
        if (cellWidth >= FIGURE_FROM_PX) {
          this.write(context, colours, row, {x, y, step, known});
          before = null;
        }
      }
    }
    // Last, so that no neighbour covers them.
    const line = cellWidth >= 16 ? 2.5 : cellWidth >= 8 ? 2 : 1.5;
    context.strokeStyle = colours.hot;
    context.lineWidth = line;
    for (let at = 0; at < hot.length; at += 2) {
      context.strokeRect(hot[at] + line / 2, hot[at + 1] + line / 2, cellWidth - gap - line, cellHeight - gap - line);
    }
  }

  write(context, colours, row, {x, y, step, known}) {
    const {cellWidth, cellHeight} = this.layout;
    const figure = known ? `${Math.round(100 * this.cluster.share[row])} %` : "–";
    context.fillStyle = !known ? colours.ink : colours.isDeep(step) ? colours.lightInk : colours.darkInk;
    if (cellWidth < NAME_FROM_PX) {
      context.textAlign = "center";
      context.fillText(figure, x + cellWidth / 2, y + cellHeight / 2);
    } else {
      context.textAlign = "left";
      const room = cellWidth - 14;
      context.fillText(clipped(context, this.cluster.names[row], room), x + 7, y + cellHeight / 2 - 7);
      context.fillText(figure, x + 7, y + cellHeight / 2 + 8);
    }
    context.textAlign = "left";
  }

  drawMarks() {
    const context = this.marks.getContext("2d");
    const {cellWidth, cellHeight} = this.layout;
    const colours = palette();
    const frame = (place, width, grow) => {
      if (!place) return;
      const {x, y} = cornerOf(this.layout, place);
      // Seen on any colour: a line, and another within.
      for (const [colour, thick] of [[colours.edge, width + 2], [colours.cursor, width]]) {
        context.strokeStyle = colour;
        context.lineWidth = thick;
        context.strokeRect(x - grow, y - grow, cellWidth - 1 + 2 * grow, cellHeight - 1 + 2 * grow);
      }
    };
    clear(context);
    frame(this.pointed, 1, 0);
    const chosen = this.chosenName === null ? -1 : this.cluster.names.indexOf(this.chosenName);
    frame(chosen < 0 ? null : placeOf(this.layout, chosen), 2, 1);
    if (document.activeElement === this.marks && this.cursor !== null) frame(placeOf(this.layout, this.cursor), 2.5, 2);
  }

  listen() {
    const resized = () => {
      const size = `${this.frame.clientWidth} ${mostHeightPx()}`;
      if (size === this.size) return;
      this.size = size;
      this.arrange();
    };
    new ResizeObserver(resized).observe(this.frame);
    addEventListener("resize", resized);
    this.marks.addEventListener("pointermove", (event) => this.point(event));
    this.marks.addEventListener("pointerleave", () => this.leave());
    this.marks.addEventListener("click", (event) => {
      const place = this.under(event);
      if (!place) return;
      this.cursor = rowAt(this.layout, place);
      this.openCursor();
    });
    this.marks.addEventListener("keydown", (event) => this.press(event));
    this.marks.addEventListener("focus", () => {
      if (!this.layout?.blocks.length || !this.marks.matches(":focus-visible")) return;
      this.cursor ??= this.layout.blocks[0].rows[0];
      this.tellCursor();
    });
    this.marks.addEventListener("blur", () => this.leave());
  }

  point(event) {
    const place = this.under(event);
    if (place?.block !== this.pointed?.block || place?.index !== this.pointed?.index) {
      this.pointed = place;
      this.drawMarks();
    }
    this.pointer = [event.clientX, event.clientY];
    if (place) this.tellPointed();
    else hideTip();
  }

  under(event) {
    return this.layout && cellAt(this.layout, event.offsetX - MARGIN_PX, event.offsetY - MARGIN_PX);
  }

  tellPointed() {
    const row = this.layout.blocks[this.pointed.block]?.rows[this.pointed.index];
    if (row !== undefined) showTip(...this.words(row), ...this.pointer);
  }

  leave() {
    this.pointed = null;
    hideTip();
    if (this.layout) this.drawMarks();
  }

  press(event) {
    if (!this.layout || this.cursor === null || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.openCursor();
      return;
    }
    const from = placeOf(this.layout, this.cursor);
    const to = from && moved(this.layout, from, event.key);
    if (!/^(Arrow|Page|Home|End)/.test(event.key)) return;
    event.preventDefault();
    if (!to) return;
    this.cursor = rowAt(this.layout, to);
    this.tellCursor();
  }

  openCursor() {
    this.opened(this.cluster.names[this.cursor]);
  }

  // Beside the cell, and for those who hear the page.
  tellCursor() {
    const place = placeOf(this.layout, this.cursor);
    if (!place) return;
    const {x, y} = cornerOf(this.layout, place);
    const {cellWidth, cellHeight} = this.layout;
    this.frame.scrollTop = Math.min(Math.max(this.frame.scrollTop, y + cellHeight + 4 - this.frame.clientHeight), Math.max(y - 20, 0));
    const box = this.marks.getBoundingClientRect();
    const [title, lines] = this.words(this.cursor);
    showTip(title, lines, box.left + x + cellWidth, box.top + y + cellHeight);
    setText(byId("heat-told"), [title, ...lines].join(", "));
    this.drawMarks();
  }
}

// So that the table below begins on the same screen.
function mostHeightPx() {
  return Math.min(Math.max(innerHeight - 460, 260), 760);
}

function looksTheSame(before, after) {
  return before.names === after.names && before.state === after.state && before.is_hot === after.is_hot
    && before.share.every((share, row) => share === after.share[row]);
}

function sizeCanvas(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  const [wideCss, highCss] = [width + 2 * MARGIN_PX, height + 2 * MARGIN_PX];
  const [wide, high] = [Math.round(wideCss * ratio), Math.round(highCss * ratio)];
  if (canvas.width === wide && canvas.height === high) return;
  canvas.width = wide;
  canvas.height = high;
  canvas.style.width = `${wideCss}px`;
  canvas.style.height = `${highCss}px`;
  canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, MARGIN_PX * ratio, MARGIN_PX * ratio);
}

function clear(context) {
  context.clearRect(-MARGIN_PX, -MARGIN_PX, context.canvas.width, context.canvas.height);
}

function clipped(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let length = text.length;
  while (length > 1 && context.measureText(`${text.slice(0, length)}…`).width > width) length -= 1;
  return `${text.slice(0, length)}…`;
}
