// The best nodes for a pod, plugin by plugin: what each plugin gave, as a number and a bar.

import {breakable, make, meter, nodeLink} from "./elements.js";
import {addedWords, bits, count, measuredWords, percent, signed} from "./wording.js";
import {keepOneStop, rove} from "./roving.js";
import {tipsFor} from "./tooltip.js";

export function scoreTable(record) {
  const all = pluginsOf(record.best);
  const plugins = all.filter(({isZero}) => !isZero);
  const zeros = all.filter(({isZero}) => isZero).map(({name}) => name);
  // One scale for all plugins: a long bar is a plugin that counts much.
  const most = Math.max(1, ...record.best.flatMap((each) => plugins.map(({name}) => Math.abs(each.scores[name]?.weighted ?? 0))));
  const table = make(
    "table",
    {role: "grid", "aria-label": `Scores of the ${record.best.length} best nodes, by plugin`},
    columns([130, 56, ...(record.priorities ? [46] : []), 56, 76, 88, ...plugins.map(() => 82)]),
    make("thead", {}, make(
      "tr",
      {},
      make("th", {scope: "col"}, "node"),
      make("th", {scope: "col", class: "number"}, "total"),
      record.priorities ? make("th", {scope: "col", class: "number", title: "what kube-scheduler was answered"}, "of 10") : null,
      make("th", {scope: "col", class: "number"}, "link"),
      make("th", {scope: "col", class: "number"}, "capacity"),
      make("th", {scope: "col", class: "number", title: "placed there and not measured yet"}, "just placed"),
      plugins.map(({name, isSame}) => make(
        "th",
        {scope: "col", class: isSame ? "same" : null, title: isSame ? "gave all of these nodes the same" : null},
        breakable(name),
      )),
    )),
    make("tbody", {}, record.best.map((each) => nodeRow(each, {record, plugins, most}))),
  );
  tipsFor(table, "td.score, td.measured", (cell) => (cell.dataset.plugin ? scoreWords(cell, record) : measuredTip(cell, record)));
  const rows = () => [...table.tBodies[0].rows].map((row) => [...row.querySelectorAll("a, td[tabindex]")]);
  rove(table, rows);
  keepOneStop(table, rows);
  const place = make("div", {class: "scores"}, table);
  place.addEventListener("scroll", () => place.classList.toggle("moved", place.scrollLeft > 0));
  const left = zeros.length ? make("p", {class: "note all-zero"}, `0 for all of these nodes: ${zeros.join(", ")}`) : null;
  return [place, left];
}

// Stated, so that the browser need not look into every cell to find them.
function columns(widthsPx) {
  return make("colgroup", {}, widthsPx.map((width) => make("col", {width})));
}

// Those that tell the nodes apart come first, the widest spread ahead.
export function pluginsOf(best) {
  const names = [...new Set(best.flatMap((each) => Object.keys(each.scores)))];
  const given = (name) => {
    const values = best.map((each) => each.scores[name]?.weighted ?? 0);
    return {name, spread: Math.max(...values) - Math.min(...values), isZero: values.every((value) => value === 0)};
  };
  return names
    .map(given)
    .sort((a, b) => b.spread - a.spread || a.name.localeCompare(b.name))
    .map(({name, spread, isZero}) => ({name, isZero, isSame: spread === 0 && best.length > 1}));
}

function nodeRow({node, total, scores, measured}, {record, plugins, most}) {
  const link = nodeLink(node);
  link.tabIndex = -1;
  const about = {class: "number measured", "data-node-name": node};
  return make(
    "tr",
    {class: node === record.node ? "chosen" : null, "data-row": node},
    make("th", {scope: "row", class: "name"}, link),
    make("td", {class: "number total"}, count(total)),
    record.priorities ? make("td", {class: "number priority"}, count(record.priorities.by_node[node])) : null,
    make("td", {...about, tabindex: -1}, percent(measured?.share)),
    make("td", about, bits(measured?.capacity) + (measured?.is_capacity_guessed ? " ?" : "")),
    make("td", about, addedWords(measured) || "–"),
    plugins.map(({name, isSame}) => {
      const weighted = scores[name]?.weighted;
      return make(
        "td",
        {class: isSame ? "score same" : "score", tabindex: -1, "data-plugin": name, "data-node-name": node},
        count(weighted),
        meter(Math.abs(weighted ?? 0) / most),
      );
    }),
  );
}

function scoreWords(cell, record) {
  const {plugin, nodeName} = cell.dataset;
  const score = record.best.find((each) => each.node === nodeName).scores[plugin];
  const title = `${plugin} of ${nodeName}`;
  if (!score) return [title, ["was not asked"]];
  const weight = score.normalized ? score.weighted / score.normalized : null;
  const times = weight !== null && Number.isInteger(weight) ? `, ${weight} times` : "";
  const chosen = record.node === nodeName ? null : record.best.find((each) => each.node === record.node)?.scores[plugin];
  const against = chosen ? [`${signed(score.weighted - chosen.weighted)} against ${record.node}`] : [];
  return [title, [`raw ${count(score.raw)}`, `normalised ${count(score.normalized)}`, `weighted ${count(score.weighted)}${times}`, ...against]];
}

function measuredTip(cell, record) {
  const {nodeName} = cell.dataset;
  const {measured} = record.best.find((each) => each.node === nodeName);
  const added = addedWords(measured);
  return [`Measured on ${nodeName}`, [measuredWords(measured), added ? `${added} placed there and not measured yet` : null].filter(Boolean)];
}
