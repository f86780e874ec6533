// The busiest nodes as a table: the heat map for those who do not see it, and a ranking for all.

import {make, meter, nodeLink, setMeter} from "./elements.js";
import {bits, count, percent, STATE_WORDS} from "./wording.js";

const MOST = 20;

export class Busiest {
  constructor(place) {
    this.body = make("tbody");
    const heads = ["node", "", "link", "in", "out", "capacity", "pods"];
    place.append(make(
      "table",
      {},
      make("caption", {class: "unseen"}, `The ${MOST} nodes with the most utilised links`),
      make("thead", {}, make("tr", {}, heads.map((head, at) => make("th", {class: at > 1 ? "number" : null, scope: "col"}, head)))),
      this.body,
    ));
    this.rows = [];
  }

  show(cluster) {
    const busiest = top(cluster.share, MOST);
    while (this.rows.length < busiest.length) this.rows.push(new Row(this.body));
    for (const row of this.rows.splice(busiest.length)) row.element.remove();
    busiest.forEach((node, at) => this.rows[at].show(cluster, node));
  }
}

// Rows stay where they are and change what they say, so that the focus is not lost each second.
class Row {
  constructor(body) {
    this.name = nodeLink("");
    this.bar = meter(0);
    this.figures = Array.from({length: 5}, () => make("td", {class: "number"}));
    this.element = make(
      "tr",
      {},
      make("td", {class: "name"}, this.name),
      make("td", {}, this.bar),
      this.figures,
    );
    body.append(this.element);
  }

  show(cluster, node) {
    const name = cluster.names[node];
    if (this.name.dataset.node !== name) {
      this.name.dataset.node = this.name.textContent = name;
      this.name.href = `#node=${encodeURI(name)}`;
    }
    setMeter(this.bar, cluster.share[node]);
    const letter = cluster.state[node];
    const told = [
      percent(cluster.share[node]) + (letter === "f" ? "" : " *"),
      bits(cluster.receive[node]),
      bits(cluster.transmit[node]),
      bits(cluster.capacity[node]),
      count(cluster.pods[node]),
    ];
    told.forEach((text, at) => {
      if (this.figures[at].textContent !== text) this.figures[at].textContent = text;
    });
    const isHot = cluster.is_hot[node] === "1";
    this.figures[0].className = isHot ? "number problem" : "number";
    this.figures[0].title = [isHot ? "hot" : "", STATE_WORDS[letter]].filter(Boolean).join(", ");
  }
}

// The rows with the highest values, without sorting all of them.
function top(values, most) {
  const found = [];
  let least = -Infinity;
  values.forEach((value, row) => {
    if (value === null || (found.length === most && value <= least)) return;
    let at = found.length;
    while (at > 0 && values[found[at - 1]] < value) at -= 1;
    found.splice(at, 0, row);
    if (found.length > most) found.pop();
    least = values[found.at(-1)];
  });
  return found;
}
