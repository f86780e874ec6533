// Makes elements. Data only ever becomes text or an attribute, never markup.

const SVG = "http://www.w3.org/2000/svg";

// make("td", {class: "number"}, "3"): null children and attributes are left out.
export function make(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function makeSvg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

export function byId(id) {
  return document.getElementById(id);
}

// Touches the document only where the text differs: what did not change is not announced again.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// A bar that fills the given part of its place.
export function meter(part) {
  const bar = make("span", {class: "meter", "aria-hidden": "true"});
  setMeter(bar, part);
  return bar;
}

export function setMeter(bar, part) {
  bar.style.backgroundSize = `${100 * Math.min(Math.max(part || 0, 0), 1)}% 100%`;
}

// [[term, value], ...] as a list of figures, each with its word.
export function figures(pairs, kind = "") {
  return make("dl", {class: `figures ${kind}`}, pairs.map(([term, value, judged]) =>
    make("div", {}, make("dt", {}, term), make("dd", {class: judged}, value))));
}

// Breaks a long name like NodeResourcesFit between its words where there is no room.
export function breakable(name) {
  return name.split(/(?<=[a-z0-9])(?=[A-Z])/).flatMap((word) => [make("wbr"), word]).slice(1);
}

export function fromTheEnd(name, kind = "") {
  return make("span", {class: `from-the-end ${kind}`}, make("bdi", {}, name));
}

export function podLink(pod) {
  return make("a", {href: `#pod=${encodeURI(pod)}`, "data-pod": pod, title: pod}, fromTheEnd(pod));
}

export function nodeLink(node) {
  return make("a", {href: `#node=${encodeURI(node)}`, "data-node": node}, node);
}
