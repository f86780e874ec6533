// Why a pod went where it went, or nowhere: the newest decision about it, and those before.

import {byId, figures, make, meter, nodeLink, podLink} from "./elements.js";
import {bits, count, counted, duration, moment, signed, timeOfDay} from "./wording.js";
import {pluginsOf, scoreTable} from "./score_table.js";
import {ask, NotFound} from "./polling.js";

const MOST_PLUGINS = 5;

export class PodView {
  constructor(closed) {
    this.place = byId("pod-view");
    this.closed = closed;
    this.pod = null;
    this.newest = null;
    this.asking = null;
  }

  // Shows that pod, or nothing; asks again where a newer decision is known to be there.
  async show(pod, newest = null) {
    const isOther = pod !== this.pod;
    this.place.hidden = pod === null;
    if (!isOther && (newest === null || newest === this.newest)) return;
    this.pod = pod;
    this.newest = newest;
    this.asking?.abort();
    if (pod === null) return;
    this.asking = new AbortController();
    if (isOther) this.fill(make("p", {class: "note"}, "Asking …"));
    try {
      const address = pod.split("/").map(encodeURIComponent).join("/");
      const answer = await ask(`api/decisions/${address}`, this.asking.signal);
      this.newest ??= answer.records[0]?.seq ?? null;
      this.showRecord(answer.records, answer.records[0]);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!(error instanceof NotFound)) this.newest = null; // to be asked again
      this.fill(make("p", {class: error instanceof NotFound ? null : "problem"}, error.message));
    }
  }

  showRecord(records, record) {
    const attempts = records.length < 2 ? null : make("ul", {class: "attempts", "aria-label": "Attempts, newest first"}, records.map((each) => {
      const words = `${timeOfDay(each.time)} ${each.extender_verb ? `${each.extender_verb}: ` : ""}${each.node ?? "nowhere"}`;
      const button = make("button", {type: "button", "aria-pressed": String(each === record), "data-attempt": each.attempt, "data-record": each.seq}, `${each.attempt}. ${words}`);
      button.addEventListener("click", () => {
        this.showRecord(records, each);
        this.place.querySelector(`button[data-record="${each.seq}"]`)?.focus();
      });
      return make("li", {}, button);
    }));
    this.fill(attempts, recordParts(record));
    this.place.dataset.seq = record.seq;
  }

  fill(...parts) {
    const close = make("button", {type: "button", "aria-keyshortcuts": "Escape"}, "Close");
    close.addEventListener("click", this.closed);
    delete this.place.dataset.seq;
    const hadFocus = this.place.contains(document.activeElement);
    this.place.replaceChildren(
      make("div", {class: "card-head"}, make("h2", {id: "pod-title", tabindex: -1}, this.pod), close),
      ...parts.flat().filter(Boolean),
    );
    if (hadFocus) this.focus();
  }

  focus() {
    byId("pod-title")?.focus();
  }
}

function recordParts(record) {
  return [
    make("p", {class: "verdict"}, ...verdict(record)),
    prioritiesPart(record),
    comparison(record),
    figures([
      ["decided", make("time", {datetime: moment(record.time)}, timeOfDay(record.time))],
      ["attempt", count(record.attempt)],
      ["waited before", duration(record.waited_seconds)],
      ["nodes that fit", `${count(record.feasible)} of ${count(record.nodes)}`],
      ["took", duration(record.seconds)],
    ], "small"),
    record.preemption ? make("p", {}, "To make room on ", nodeLink(record.preemption.node), ", it evicts ",
      ...record.preemption.victims.flatMap((victim, at) => [at ? ", " : "", podLink(victim)]), ".") : null,
    readingWords(record.reading),
    ...(record.best.length ? scoreTable(record) : []),
    make("div", {class: "columns"}, reasonsPart(record), timesPart(record)),
  ];
}

function verdict(record) {
  const isOn = record.actual_node ? nodeLink(record.actual_node) : null;
  if (record.node === null) {
    return [make("b", {class: "problem"}, record.neutral_reason ? "" : "Fits nowhere. "), record.message ?? "", ...(isOn ? [" It is on ", isOn, "."] : [])];
  }
  const [chosen, next] = record.best;
  const parts = place(record, isOn);
  if (record.by_nomination) return [...parts, ", the node that it was nominated to."];
  if (record.runner_up === null || !chosen) return [...parts, record.feasible === 1 ? ", the only node that fits." : "."];
  if (record.margin === 0) {
    const turns = record.extender_verb ? "." : ": equal nodes take turns.";
    return [...parts, ", with as many points as ", nodeLink(record.runner_up), ` (${count(chosen.total)})${turns}`];
  }
  const totals = next && next.node === record.runner_up ? ` (${count(chosen.total)} to ${count(next.total)})` : "";
  return [...parts, `, ${counted(record.margin, "point")} ahead of `, nodeLink(record.runner_up), `${totals}.`];
}

function place({node, extender_verb: verb, actual_node: isOnName}, isOn) {
  if (verb) return [...(isOn ? ["It is on ", isOn, "; asked"] : ["Asked"]), ` to ${verb}, Lowtide advised `, nodeLink(node)];
  if (!isOn) return ["It goes to ", nodeLink(node)];
  if (isOnName === node) return ["It is on ", isOn, ", where it would be too"];
  return ["It is on ", isOn, ", and would be on ", nodeLink(node)];
}

// How many nodes share the first place in what kube-scheduler was answered.
function prioritiesPart({node, nodes, priorities}) {
  if (!priorities) return null;
  const {highest, highest_count: shared} = priorities;
  const were = shared === 1
    ? `${node} alone was answered ${highest} of 10, the most`
    : shared === nodes ? `All ${count(nodes)} nodes were answered ${highest} of 10` : `${count(shared)} of ${count(nodes)} nodes were answered ${highest} of 10, the most`;
  const picks = shared === 1 ? "" : "picks among equal ones by itself, and ";
  return make("p", {class: "note priorities"}, `${were}; kube-scheduler ${picks}adds its own scores.`);
}

// What made the difference between the first two: the one line that most come for.
function comparison(record) {
  const chosen = record.best.find((each) => each.node === record.node);
  const next = record.best.find((each) => each.node === record.runner_up);
  if (!chosen || !next) return null;
  const differences = pluginsOf([chosen, next])
    .map(({name}) => [name, (chosen.scores[name]?.weighted ?? 0) - (next.scores[name]?.weighted ?? 0)])
    .filter(([, difference]) => difference !== 0);
  if (!differences.length) return make("p", {class: "note"}, "Every plugin gave both the same score.");
  const shown = differences.slice(0, MOST_PLUGINS).map(([name, difference]) => `${name} ${signed(difference)}`);
  const rest = differences.length > MOST_PLUGINS ? ` and ${differences.length - MOST_PLUGINS} more` : "";
  return make("p", {class: "comparison"}, `Against the next: ${shown.join(", ")}${rest}.`);
}

function readingWords(reading) {
  if (!reading) return make("p", {class: "note"}, "Without a reading of the traffic.");
  const expected = reading.expected_receive === null && reading.expected_transmit === null
    ? ""
    : `; of this pod ${bits(reading.expected_receive)} in and ${bits(reading.expected_transmit)} out are expected`;
  return make("p", {class: "note"}, `The traffic had been measured ${duration(reading.age_seconds)} before, over ${duration(reading.window_seconds)}${expected}.`);
}

function reasonsPart(record) {
  const reasons = Object.entries(record.reasons).sort(([, a], [, b]) => b - a);
  if (!reasons.length) return null;
  const by = record.unschedulable_plugins.length ? ` by ${record.unschedulable_plugins.join(", ")}` : "";
  return make(
    "div",
    {},
    make("h3", {}, `Rejected on ${counted(record.nodes - record.feasible, "node")}${by}`),
    make("dl", {class: "tally reasons"}, reasons.map(([reason, nodes]) => [make("dt", {}, reason), make("dd", {}, count(nodes))])),
  );
}

function timesPart(record) {
  const times = Object.entries(record.seconds_by_plugin ?? {}).sort(([, a], [, b]) => b - a);
  if (!times.length) return null;
  return make(
    "div",
    {},
    make("h3", {}, "Time by plugin"),
    make("table", {class: "times"}, make("tbody", {}, times.map(([plugin, seconds]) => make(
      "tr",
      {},
      make("td", {}, plugin),
      make("td", {}, meter(seconds / times[0][1])),
      make("td", {class: "number"}, duration(seconds)),
    )))),
    make("p", {class: "note"}, "Plugins that are not listed did not run: their answers for an equal pod were still valid."),
  );
}
