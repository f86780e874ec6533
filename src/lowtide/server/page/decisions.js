// The stream of decisions, newest first. It can be paused and filtered, and is bounded.

import {byId, fromTheEnd, make, setText} from "./elements.js";
import {count, counted, moment, percent, placeWords, timeOfDay} from "./wording.js";
import {keepOneStop, rove} from "./roving.js";

export const MOST = 200;

export class Decisions {
  constructor() {
    this.list = byId("decisions-list");
    this.last = 0;
    this.lines = []; // newest first: {decision, item}
    this.held = []; // came while paused
    this.isPaused = false;
    this.openPod = null;
    this.filter = byId("filter");
    this.filter.addEventListener("input", () => this.applyFilter());
    byId("pause").addEventListener("click", () => this.pause(!this.isPaused));
    rove(this.list, () => this.links());
    this.tell();
  }

  // As /api/decisions answers.
  take({last, decisions}) {
    this.last = last;
    if (!decisions.length) return;
    if (this.isPaused) {
      this.held = [...this.held, ...decisions].slice(-MOST);
      this.tell();
    } else {
      this.add(decisions);
    }
  }

  // The server was started again and counts from the beginning.
  forget() {
    this.last = 0;
    this.lines = [];
    this.held = [];
    this.list.replaceChildren();
    this.tell();
  }

  add(decisions) {
    const added = decisions.slice(-MOST).reverse().map((decision) => ({decision, item: line(decision)}));
    this.lines = [...added, ...this.lines];
    for (const {item} of this.lines.splice(MOST)) item.remove();
    this.list.prepend(...added.map(({item}) => item));
    this.applyFilter();
    this.mark(this.openPod);
  }

  pause(isPaused) {
    this.isPaused = isPaused;
    const button = byId("pause");
    button.setAttribute("aria-pressed", String(isPaused));
    button.textContent = isPaused ? "Go on" : "Pause";
    const held = this.held;
    this.held = [];
    if (held.length) this.add(held);
    this.tell();
  }

  applyFilter() {
    const wanted = this.filter.value.trim().toLowerCase();
    for (const {decision, item} of this.lines) {
      item.hidden = wanted !== "" && !`${decision.pod} ${decision.node ?? ""} ${decision.actual_node ?? ""}`.toLowerCase().includes(wanted);
    }
    keepOneStop(this.list, () => this.links());
    this.tell();
  }

  mark(pod) {
    this.openPod = pod;
    for (const {decision, item} of this.lines) {
      if (decision.pod === pod) item.firstChild.setAttribute("aria-current", "true");
      else item.firstChild.removeAttribute("aria-current");
    }
  }

  newestOf(pod) {
    return this.lines.find(({decision}) => decision.pod === pod)?.decision.seq ?? null;
  }

  links() {
    return this.lines.filter(({item}) => !item.hidden).map(({item}) => [item.firstChild]);
  }

  focus() {
    (this.list.querySelector('a[tabindex="0"]') ?? this.filter).focus();
  }

  tell() {
    const shown = this.lines.filter(({item}) => !item.hidden).length;
    const parts = [];
    if (!this.lines.length && !this.held.length) parts.push("none yet");
    if (shown < this.lines.length) parts.push(`${count(shown)} of ${count(this.lines.length)} match`);
    if (this.isPaused) parts.push(`paused, ${counted(this.held.length, "newer decision")} held back`);
    setText(byId("decisions-told"), parts.join("; ") || `the last ${count(this.lines.length)}`);
  }
}

function line(decision) {
  const {pod, node, time, extender_verb: verb, actual_node: isOn} = decision;
  const told = node === null ? decision.message ?? "fits nowhere" : `${pod}: ${placeWords(decision)}`;
  const isElsewhere = !verb && isOn && isOn !== node;
  const link = make(
    "a",
    {
      href: `#pod=${encodeURI(pod)}`,
      "data-pod": pod,
      tabindex: -1,
      title: decision.attempt > 1 ? `${told} (attempt ${decision.attempt})` : told,
      class: node === null ? "nowhere" : isElsewhere ? "elsewhere" : null,
    },
    make("span", {class: "time", title: moment(time)}, timeOfDay(time)),
    fromTheEnd(pod, "pod"),
    fromTheEnd(node === null ? "nowhere" : isElsewhere ? `${isOn} → ${node}` : `→ ${node}`, "node"),
    make("span", {class: "margin"}, decision.margin === 0 ? "equal" : count(decision.margin)),
    make("span", {class: "share"}, percent(decision.share)),
  );
  return make("li", {"data-seq": decision.seq}, link);
}
