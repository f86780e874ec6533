// Whether all is well: the line at the top of the page, and the card with queue, readings and the
// doctor's verdicts.

import {byId, figures, make, nodeLink, setText} from "./elements.js";
import {count, duration, percent, timeOfDay} from "./wording.js";

const QUEUE = ["active", "backoff", "unschedulable", "gated"];
const MARKS = {fault: "✗", note: "!"};
const CLASSES = {fault: "problem", note: "warning"};
const KINDS_NAMED = 3;
const STATES = ["fresh", "stale", "missing", "implausible"];

export class Health {
  constructor(place) {
    this.figures = make("div");
    this.examined = make("p", {class: "note"});
    this.findings = make("ul", {class: "findings"});
    place.replaceChildren(
      this.figures,
      make("h3", {}, "Findings of the doctor"),
      this.examined,
      this.findings,
    );
    this.before = {};
    this.shown = null;
  }

  show(health) {
    this.shown = health;
    showStaleWatches(health.stale_watches);
    const {diagnosis, ...others} = health;
    this.renew("figures", others, () => [
      figures(queueFigures(health)),
      ...health.readings.map(readingPart),
      health.readings.length ? "" : make("p", {class: "note"}, "No plugin asks for readings."),
    ]);
    setText(this.examined, examinedText(diagnosis));
    this.renew("findings", diagnosis?.findings ?? [], (findings) => findings.map(findingPart));
  }

  // What is shown as before stays: what was opened is still open, and has the focus.
  renew(part, shown, made) {
    const text = JSON.stringify(shown);
    if (text === this.before[part]) return;
    this.before[part] = text;
    this[part].replaceChildren(...made(shown));
  }
}

// Above all else: what is seen is old, as the API server cannot be followed.
function showStaleWatches(stale) {
  const strip = byId("stale-watches");
  strip.hidden = !stale;
  if (!stale) return;
  const {since, resources, reason} = stale;
  const more = resources.length - KINDS_NAMED;
  const kinds = resources.slice(0, KINDS_NAMED).join(", ") + (more > 0 ? ` and ${count(more)} more` : "");
  setText(strip, `Since ${timeOfDay(since)} ${kinds} are not renewed, and what you see of them is from then: ${reason}`);
}

function queueFigures({queue, bindings_in_flight: bindings, is_leader: isLeader}) {
  const judged = (name) => (name === "unschedulable" && queue[name] > 0 ? "warning" : null);
  const parts = queue ? QUEUE.map((name) => [name, count(queue[name]), judged(name)]) : [];
  if (bindings !== null && bindings !== undefined) parts.push(["bindings under way", count(bindings)]);
  if (isLeader !== null && isLeader !== undefined) parts.push(["of the lease", isLeader ? "holder" : "not the holder"]);
  return parts;
}

function readingPart(reading) {
  const age = reading.age_seconds === null || reading.age_seconds === undefined
    ? "nothing measured yet"
    : `measured ${duration(reading.age_seconds)} ago over ${duration(reading.window_seconds)}`;
  return make(
    "div",
    {class: "reading"},
    make("h3", {}, reading.source),
    make("p", {class: "note"}, age, reading.is_ignored
      ? make("span", {class: "problem"}, "; too few readings are fresh, so traffic is ignored")
      : ""),
    figures(STATES.map((state) => [
      state,
      count(reading[state]),
      state !== "fresh" && reading[state] > 0 ? "warning" : null,
    ]), "small"),
    reading.error ? make("p", {class: "problem"}, reading.error) : "",
  );
}

function examinedText(diagnosis) {
  if (!diagnosis) return "Nothing was examined yet.";
  const ago = `examined ${duration(diagnosis.age_seconds)} ago`;
  return diagnosis.findings.length ? `${ago}; the fix is below each` : `All is well; ${ago}`;
}

function findingPart({severity, code, text, nodes, node_count: nodeCount, fix}) {
  const more = nodeCount - nodes.length;
  return make(
    "li",
    {"data-code": code},
    make(
      "details",
      {},
      make("summary", {}, make("b", {class: CLASSES[severity]}, `${MARKS[severity] ?? ""} ${severity}`), ` ${text}`),
      nodes.length
        ? make("p", {}, `${count(nodeCount)} ${nodeCount === 1 ? "node" : "nodes"}: `,
          nodes.map((node, place) => [place ? ", " : "", nodeLink(node)]), more ? ` and ${count(more)} more` : "")
        : "",
      make("pre", {}, fix || "There is no fix to paste."),
    ),
  );
}

// The cluster in one line.
export function showSummary(cluster, health) {
  const {share, names, is_hot: isHot, state} = cluster;
  let hottest = -1, hot = 0, fresh = 0;
  for (let row = 0; row < names.length; row += 1) {
    if (share[row] !== null && (hottest < 0 || share[row] > share[hottest])) hottest = row;
    hot += isHot[row] === "1";
    fresh += state[row] === "f";
  }
  const parts = [["nodes", count(names.length)], ["hot", count(hot), hot ? "problem" : "good"]];
  if (hottest >= 0) parts.push(["busiest", `${percent(share[hottest])} ${names[hottest]}`]);
  parts.push(["fresh", `${count(fresh)} of ${count(names.length)}`, fresh < names.length ? "warning" : "good"]);
  if (health?.queue) {
    const waiting = QUEUE.reduce((sum, name) => sum + (health.queue[name] ?? 0), 0);
    parts.push(["waiting", count(waiting)]);
  }
  const text = JSON.stringify(parts);
  const summary = byId("summary");
  if (summary.dataset.told === text) return;
  summary.dataset.told = text;
  summary.replaceChildren(...parts.map(([term, value, judged]) =>
    make("div", {}, make("dt", {}, term), make("dd", {class: judged}, value))));
}
