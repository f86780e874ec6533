// The colours of utilisation. Lightness alone tells how much, so the order is the same for
// colour-blind people and in print; hot nodes have an outline besides.

import {isDark} from "./theme.js";

export const STEPS = 20;
const LIGHT = ["#eef3f6", "#cfe1ea", "#9dc6da", "#5d9fc4", "#2a6ea6", "#1d3f7c", "#1a1648"];
const DARK = ["#1f2a35", "#22435a", "#27627f", "#3285a0", "#59aab0", "#a1d0b4", "#f6f3c3"];

export function palette() {
  const dark = isDark();
  const anchors = (dark ? DARK : LIGHT).map(channels);
  return {
    steps: Array.from({length: STEPS + 1}, (_, step) => mixed(anchors, step / STEPS)),
    // On which of them writing has to be light.
    isDeep: (step) => (dark ? step < 0.55 * STEPS : step > 0.56 * STEPS),
    unknown: dark ? "#171d23" : "#f7f8f9",
    hatch: dark ? "#66737f" : "#8d99a4",
    hot: dark ? "#ff8a4c" : "#d9480f",
    edge: dark ? "#181e25" : "#ffffff",
    ink: dark ? "#e4eaf0" : "#15202b",
    lightInk: "#ffffff",
    darkInk: "#10161c",
    dim: dark ? "#9aa8b6" : "#52606d",
    cursor: dark ? "#ffffff" : "#000000",
  };
}

export function stepOf(share) {
  return Math.min(Math.max(Math.round(share * STEPS), 0), STEPS);
}

function channels(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

function mixed(anchors, part) {
  const at = part * (anchors.length - 1);
  const low = Math.min(Math.floor(at), anchors.length - 2);
  const parts = anchors[low].map((value, index) => Math.round(value + (anchors[low + 1][index] - value) * (at - low)));
  return `rgb(${parts.join(" ")})`;
}

export function hatching(context, colour) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const drawing = tile.getContext("2d");
  drawing.strokeStyle = colour;
  drawing.lineWidth = 1.2;
  drawing.beginPath();
  for (const start of [-6, 0, 6]) {
    drawing.moveTo(start, 6);
    drawing.lineTo(start + 6, 0);
  }
  drawing.stroke();
  return context.createPattern(tile, "repeat");
}
