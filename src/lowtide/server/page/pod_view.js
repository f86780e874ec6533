// Why a pod went where it went, or nowhere: the newest decision about it, and those before.

import {byId, figures, make, meter, nodeLink, podLink} from "./elements.js";
import {bits, count, counted, duration, moment, signed, timeOfDay} from "./wording.js";
import {rulesOf, scoreTable} from "./score_table.js";
import {ask, NotFound} from "./polling.js";

const RULES_TOLD = 5;

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
      const told = `${timeOfDay(each.time)} ${each.asked ? `${each.asked}: ` : ""}${each.node ?? "nowhere"}`;
      const button = make("button", {type: "button", "aria-pressed": String(each === record), "data-attempt": each.attempt, "data-record": each.seq}, `${each.attempt}. ${told}`);
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
    record.preempts ? make("p", {}, "To make room on ", nodeLink(record.preempts.node), ", it evicts ",
      ...record.preempts.victims.flatMap((victim, at) => [at ? ", " : "", podLink(victim)]), ".") : null,
    readingWords(record.reading),
    ...(record.best.length ? scoreTable(record) : []),
    make("div", {class: "columns"}, reasonsPart(record), timesPart(record)),
  ];
}

function verdict(record) {
  const isOn = record.is_on ? nodeLink(record.is_on) : null;
  if (record.node === null) {
    return [make("b", {class: "problem"}, record.neutral ? "" : "Fits nowhere. "), record.message ?? "", ...(isOn ? [" It is on ", isOn, "."] : [])];
  }
  const [chosen, next] = record.best;
  const parts = place(record, isOn);
  if (record.by_nomination) return [...parts, ", the node that was promised to it."];
  if (record.runner_up === null || !chosen) return [...parts, record.feasible === 1 ? ", the only node that fits." : "."];
  if (record.margin === 0) {
    const turns = record.asked ? "." : ": equal nodes take turns.";
    return [...parts, ", with as many points as ", nodeLink(record.runner_up), ` (${count(chosen.total)})${turns}`];
  }
  const totals = next && next.node === record.runner_up ? ` (${count(chosen.total)} to ${count(next.total)})` : "";
  return [...parts, `, ${counted(record.margin, "point")} ahead of `, nodeLink(record.runner_up), `${totals}.`];
}

function place({node, asked, is_on: isOnName}, isOn) {
  if (asked) return [...(isOn ? ["It is on ", isOn, "; asked"] : ["Asked"]), ` to ${asked}, Lowtide advised `, nodeLink(node)];
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
  const differences = rulesOf([chosen, next])
    .map(({name}) => [name, (chosen.rules[name]?.weighted ?? 0) - (next.rules[name]?.weighted ?? 0)])
    .filter(([, difference]) => difference !== 0);
  if (!differences.length) return make("p", {class: "note"}, "Every rule gave both the same.");
  const told = differences.slice(0, RULES_TOLD).map(([name, difference]) => `${name} ${signed(difference)}`);
  const rest = differences.length > RULES_TOLD ? ` and ${differences.length - RULES_TOLD} more` : "";
  return make("p", {class: "comparison"}, `Against the next: ${told.join(", ")}${rest}.`);
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
  const by = record.rejected_by.length ? ` by ${record.rejected_by.join(", ")}` : "";
  return make(
    "div",
    {},
    make("h3", {}, `Refused on ${counted(record.nodes - record.feasible, "node")}${by}`),
    make("dl", {class: "tally reasons"}, reasons.map(([reason, nodes]) => [make("dt", {}, reason), make("dd", {}, count(nodes))])),
  );
}

function timesPart(record) {
  const times = Object.entries(record.seconds_by_rule ?? {}).sort(([, a], [, b]) => b - a);
  if (!times.length) return null;
  return make(
    "div",
    {},
    make("h3", {}, "Time that rules took"),
    make("table", {class: "times"}, make("tbody", {}, times.map(([rule, seconds]) => make(
      "tr",
      {},
      make("td", {}, rule),
      make("td", {}, meter(seconds / times[0][1])),
      make("td", {class: "number"}, duration(seconds)),
    )))),
    make("p", {class: "note"}, "Rules that are not listed were not asked: what they said of an equal pod was still true."),
  );
}
