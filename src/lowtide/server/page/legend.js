// What the colours of the heat map mean.

import {hatching, palette} from "./heat_colours.js";
import {make} from "./elements.js";

const RAMP_PX = 132;
const HEIGHT_PX = 12;

export function drawLegend(place) {
  const colours = palette();
  const ramp = drawn(RAMP_PX, (context) => colours.steps.forEach((colour, step) => {
    const wide = RAMP_PX / colours.steps.length;
    context.fillStyle = colour;
    context.fillRect(Math.floor(step * wide), 0, Math.ceil(wide), HEIGHT_PX);
  }));
  const unsure = drawn(18, (context) => {
    context.fillStyle = colours.unknown;
    context.fillRect(0, 0, 18, HEIGHT_PX);
    context.fillStyle = hatching(context, colours.hatch);
    context.fillRect(0, 0, 18, HEIGHT_PX);
  });
  const hot = drawn(18, (context) => {
    context.strokeStyle = colours.hot;
    context.lineWidth = 2.5;
    context.strokeRect(1.25, 1.25, 15.5, HEIGHT_PX - 2.5);
  });
  place.setAttribute("aria-label", "Colours from 0 to 100 % of the link; hatched: no fresh reading; outlined: hot");
  place.replaceChildren("0 %", ramp, "100 %", make("span"), unsure, "no fresh reading", make("span"), hot, "hot");
}

function drawn(width, draw) {
  const ratio = devicePixelRatio || 1;
  const canvas = make("canvas", {width: width * ratio, height: HEIGHT_PX * ratio});
  canvas.style.width = `${width}px`;
  canvas.style.height = `${HEIGHT_PX}px`;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  draw(context);
  return canvas;
}
