// The one tooltip: a title and lines, beside the pointer or the element that has the focus.

import {byId, make} from "./elements.js";

const GAP_PX = 14;

export function showTip(title, lines, x, y) {
  const tip = byId("tooltip");
  tip.replaceChildren(make("b", {}, title), ...lines.map((line) => make("div", {}, line)));
  tip.hidden = false;
  const {width, height} = tip.getBoundingClientRect();
  const left = x + GAP_PX + width > innerWidth ? x - GAP_PX - width : x + GAP_PX;
  const top = y + GAP_PX + height > innerHeight ? y - GAP_PX - height : y + GAP_PX;
  tip.style.transform = `translate(${Math.max(left, 4)}px, ${Math.max(top, 4)}px)`;
}

export function hideTip() {
  byId("tooltip").hidden = true;
}

// `words(element)` gives [title, lines] for what matches within the container, or null.
export function tipsFor(container, selector, words) {
  const show = (event) => {
    const element = event.target.closest?.(selector);
    const found = element && words(element);
    if (!found) return hideTip();
    const box = element.getBoundingClientRect();
    const isPointed = event.type !== "focusin";
    showTip(...found, isPointed ? event.clientX : box.right, isPointed ? event.clientY : box.bottom);
  };
  container.addEventListener("pointerover", show);
  container.addEventListener("focusin", show);
  container.addEventListener("pointerleave", hideTip);
  container.addEventListener("focusout", hideTip);
}
