// A node's traffic over time against what its link carries, as an SVG.

import {make, makeSvg} from "./elements.js";
import {bits, percent, timeOfDay} from "./wording.js";
import {hideTip, showTip} from "./tooltip.js";

const HIGH = 190;
const LEFT = 4, RIGHT = 4, TOP = 16, BOTTOM = 20;

export function trafficChart({times, receive, transmit, share, capacity}, widthPx) {
  if (times.length < 2) return make("p", {class: "note"}, "Too few readings yet for a chart.");
  const highest = Math.max(capacity ?? 0, ...receive.map(Number), ...transmit.map(Number)) * 1.04 || 1;
  const x = (time) => LEFT + (widthPx - LEFT - RIGHT) * (time - times[0]) / (times.at(-1) - times[0] || 1);
  const y = (value) => HIGH - BOTTOM - (HIGH - TOP - BOTTOM) * value / highest;
  const hair = makeSvg("line", {class: "hair", y1: TOP, y2: HIGH - BOTTOM, visibility: "hidden"});
  const svg = makeSvg(
    "svg",
    {class: "chart", width: widthPx, height: HIGH, tabindex: 0, role: "img", "aria-label": told(receive, transmit, capacity)},
    [0, 0.5].map((part) => gridLine(y(part * (capacity || highest)), bits(part * (capacity || highest)), widthPx)),
    capacity ? makeSvg("line", {class: "capacity", x1: LEFT, x2: widthPx - RIGHT, y1: y(capacity), y2: y(capacity)}) : null,
    capacity ? makeSvg("text", {x: LEFT, y: y(capacity) - 4}, `capacity ${bits(capacity)}`) : null,
    makeSvg("text", {x: LEFT, y: HIGH - 5}, timeOfDay(times[0])),
    makeSvg("text", {x: widthPx - RIGHT, y: HIGH - 5, "text-anchor": "end"}, timeOfDay(times.at(-1))),
    makeSvg("path", {class: "receive", d: path(times.map(x), receive, y)}),
    makeSvg("path", {class: "transmit", d: path(times.map(x), transmit, y)}),
    hair,
  );
  followPointer(svg, times, {
    at: (index) => {
      for (const end of ["x1", "x2"]) hair.setAttribute(end, x(times[index]));
      hair.setAttribute("visibility", "visible");
      return [timeOfDay(times[index]), [`in ${bits(receive[index])}`, `out ${bits(transmit[index])}`, `link ${percent(share[index])}`]];
    },
    left: () => hair.setAttribute("visibility", "hidden"),
    x,
  });
  return make("div", {}, svg, make(
    "div",
    {class: "chart-key"},
    make("span", {class: "receive"}, `— in ${bits(receive.at(-1))}`),
    make("span", {class: "transmit"}, `- - out ${bits(transmit.at(-1))}`),
  ));
}

function gridLine(y, label, widthPx) {
  return makeSvg("g", {}, makeSvg("line", {class: "grid", x1: LEFT, x2: widthPx - RIGHT, y1: y, y2: y}), makeSvg("text", {x: widthPx - RIGHT, y: y - 3, "text-anchor": "end"}, label));
}

// A gap where nothing was known.
function path(xs, values, y) {
  let isDown = false;
  return values.map((value, index) => {
    if (value === null) {
      isDown = false;
      return "";
    }
    const step = `${isDown ? "L" : "M"}${xs[index].toFixed(1)} ${y(value).toFixed(1)}`;
    isDown = true;
    return step;
  }).join("");
}

function told(receive, transmit, capacity) {
  return `Traffic over time: now ${bits(receive.at(-1))} in and ${bits(transmit.at(-1))} out of ${bits(capacity)}; arrow keys read the values`;
}

function followPointer(svg, times, {at, left, x}) {
  let index = times.length - 1;
  const show = (clientX, clientY) => showTip(...at(index), clientX, clientY);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const wanted = event.clientX - box.left;
    index = times.reduce((best, time, each) => (Math.abs(x(time) - wanted) < Math.abs(x(times[best]) - wanted) ? each : best), 0);
    show(event.clientX, event.clientY);
  });
  svg.addEventListener("keydown", (event) => {
    const step = {ArrowLeft: -1, ArrowRight: 1, Home: -times.length, End: times.length}[event.key];
    if (!step) return;
    event.preventDefault();
    index = Math.min(Math.max(index + step, 0), times.length - 1);
    const box = svg.getBoundingClientRect();
    show(box.left + x(times[index]), box.top + 20);
  });
  for (const kind of ["pointerleave", "blur"]) {
    svg.addEventListener(kind, () => {
      left();
      hideTip();
    });
  }
}
