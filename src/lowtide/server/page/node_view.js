// One node: its traffic over time, what it holds, and why pods that wait are rejected there.

import {byId, figures, make, meter, podLink} from "./elements.js";
import {addedWords, amount, count, counted, measuredWords, percent} from "./wording.js";
import {ask, NotFound, Poller} from "./polling.js";
import {trafficChart} from "./chart.js";

const EVERY_SECONDS = 2;
const PODS_SHOWN = 100;

export class NodeView {
  constructor(closed, told) {
    this.place = byId("node-view");
    this.closed = closed;
    this.told = told;
    this.name = null;
    this.parts = new Map();
    this.poller = new Poller(EVERY_SECONDS, (signal) => this.ask(signal), (failure, waitSeconds) => {
      told(failure instanceof NotFound ? null : failure, waitSeconds);
    });
  }

  show(name) {
    if (name === this.name) return;
    this.name = name;
    this.place.hidden = name === null;
    this.poller.stop();
    this.told(null, 0);
    if (name === null) return;
    this.begin();
    this.poller.start();
  }

  begin() {
    const close = make("button", {type: "button", "aria-keyshortcuts": "Escape"}, "Close");
    close.addEventListener("click", this.closed);
    delete this.place.dataset.node;
    this.parts = new Map();
    this.place.replaceChildren(make("div", {class: "card-head"}, make("h2", {id: "node-title", tabindex: -1}, this.name), close));
  }

  async ask(signal) {
    let node;
    try {
      node = await ask(`api/nodes/${encodeURIComponent(this.name)}`, signal);
    } catch (error) {
      if (error instanceof NotFound) this.part("rejected", error.message, () => make("p", {class: "note"}, error.message));
      throw error;
    }
    this.part("rejected", "", () => "");
    this.part("state", [node.reading, node.unschedulable, node.taints, node.requested, node.allocatable], () => statePart(node));
    // The card's padding is taken off.
    const widthPx = Math.max(this.place.clientWidth - 28, 200);
    this.part("chart", [node.history, widthPx], () => make("div", {}, make("h3", {}, "Traffic over time"), trafficChart(node.history, widthPx)));
    this.part("rejections", node.rejections, () => rejectionsPart(node.rejections));
    this.part("resources", [node.allocatable, node.requested], () => resourcesPart(node));
    this.part("pods", node.pods, () => podsPart(node.pods));
    this.part("labels", node.labels, () => labelsPart(node.labels));
    this.place.dataset.node = node.name;
  }

  // Makes a part again only where what it shows has changed, and leaves the focus where it was.
  part(name, data, build) {
    const text = JSON.stringify(data);
    const before = this.parts.get(name);
    if (before?.text === text) return;
    const element = make("div", {"data-part": name}, build());
    if (before) {
      const focused = before.element.contains(document.activeElement) ? document.activeElement : null;
      before.element.replaceWith(element);
      if (focused) sameIn(element, focused)?.focus();
    } else {
      this.place.append(element);
    }
    this.parts.set(name, {text, element});
  }

  focus() {
    byId("node-title")?.focus();
  }
}

function sameIn(element, focused) {
  if (focused.dataset.pod) return [...element.querySelectorAll("a[data-pod]")].find((link) => link.dataset.pod === focused.dataset.pod);
  return element.querySelector("[tabindex]");
}

function statePart({reading, unschedulable, taints}) {
  const added = addedWords(reading);
  return make(
    "div",
    {},
    figures([["of the link", percent(reading?.share)], ...(added ? [["just placed, not measured yet", added]] : [])]),
    make("p", {class: "note measured"}, measuredWords(reading)),
    unschedulable ? make("p", {class: "warning"}, "Cordoned: no new pods.") : null,
    taints.length ? make("p", {class: "note"}, "Tainted: ", make("span", {class: "mono"}, taints.join(", "))) : null,
  );
}

function rejectionsPart(rejections) {
  return make(
    "div",
    {},
    make("h3", {}, "Pods that wait and do not fit here"),
    rejections.length
      ? make("table", {class: "rejections"}, make("tbody", {}, rejections.map((rejection) => make(
        "tr",
        {},
        make("td", {class: "name"}, podLink(rejection.pod)),
        make("td", {}, rejection.reasons.join("; "), " ", make("span", {class: "note"}, rejection.plugin)),
      ))))
      : make("p", {class: "note"}, "None."),
  );
}

function resourcesPart({allocatable, requested}) {
  const rows = Object.entries(allocatable).filter(([name, value]) => value || requested[name]);
  return make(
    "div",
    {},
    make("h3", {}, "Requested of what there is"),
    make("table", {class: "resources"}, make("tbody", {}, rows.map(([name, value]) => {
      const part = typeof value === "number" && value > 0 ? (requested[name] ?? 0) / value : null;
      return make(
        "tr",
        {},
        make("td", {}, name),
        make("td", {}, part === null ? "" : meter(part)),
        make("td", {class: "number"}, `${amount(name, requested[name] ?? 0)} of ${amount(name, value)}`),
        make("td", {class: "number"}, percent(part)),
      );
    }))),
  );
}

function podsPart(pods) {
  const more = pods.length - PODS_SHOWN;
  return make(
    "div",
    {},
    make("h3", {}, counted(pods.length, "pod")),
    pods.length ? make("table", {class: "pods"}, make("tbody", {}, pods.slice(0, PODS_SHOWN).map((each) => make(
      "tr",
      {},
      make("td", {class: "name"}, podLink(each.pod)),
      make("td", {class: "note"}, each.is_assumed ? "just placed" : ""),
      make("td", {class: "number"}, `${amount("cpu", each.cpu)} cpu`),
      make("td", {class: "number"}, amount("memory", each.memory)),
    )))) : null,
    more > 0 ? make("p", {class: "note"}, `and ${count(more)} more`) : null,
  );
}

function labelsPart(labels) {
  return make(
    "div",
    {},
    make("h3", {}, "Labels"),
    make("ul", {class: "labels"}, Object.entries(labels).map(([key, value]) => make("li", {}, value ? `${key}=${value}` : key))),
  );
}
