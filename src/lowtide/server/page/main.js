// Joins the parts of the page: what is asked, who shows it, and what is open.

import {byId, setText} from "./elements.js";
import {ask, Poller} from "./polling.js";
import {bits, counted, percent, STATE_WORDS, timeOfDay} from "./wording.js";
import {followLinks, onChange, open, opened} from "./selection.js";
import {startTheme} from "./theme.js";
import {startKeys} from "./keys.js";
import {drawLegend} from "./legend.js";
import {HeatMap} from "./heat_map.js";
import {Busiest} from "./busiest.js";
import {Decisions, MOST} from "./decisions.js";
import {Health, showSummary} from "./health.js";
import {PodView} from "./pod_view.js";
import {NodeView} from "./node_view.js";

const EVERY_SECONDS = 1;
const HEALTH_EVERY_SECONDS = 2;
const IN_ORDER = new Intl.Collator("en", {numeric: true});

class Page {
  constructor() {
    this.cluster = null;
    this.failures = new Map(); // by kind of request
    this.heat = new HeatMap((row) => this.nodeWords(row), (node) => this.openFrom({node}));
    this.busiest = new Busiest(byId("busiest"));
    this.health = new Health(byId("health"));
    this.decisions = new Decisions();
    this.podView = new PodView(() => open({pod: null}));
    this.nodeView = new NodeView(() => open({node: null}), this.hear("node"));
    this.openers = new Map(); // what had the focus before, by what was opened
    this.polls = {
      cluster: new Poller(EVERY_SECONDS, (signal) => this.askCluster(signal), this.hear("cluster")),
      decisions: new Poller(EVERY_SECONDS, (signal) => this.askDecisions(signal), this.hear("decisions")),
      health: new Poller(HEALTH_EVERY_SECONDS, (signal) => this.askHealth(signal), this.hear("health")),
    };
  }

  run() {
    startTheme(byId("theme"), () => {
      drawLegend(byId("legend"));
      this.heat.arrange();
    });
    for (const id of ["group-by", "order-by"]) {
      byId(id).addEventListener("change", () => this.heat.arrangeBy(byId("group-by").value, byId("order-by").value));
    }
    document.addEventListener("click", (event) => this.remember(event.target.closest?.("a[data-pod], a[data-node]")), true);
    followLinks();
    onChange(() => this.showOpened());
    startKeys({
      h: () => this.goToHeatMap(),
      d: () => this.goToDecisions(),
      "/": () => this.goToDecisions(byId("filter")),
      p: () => this.decisions.pause(!this.decisions.isPaused),
      g: () => nextOption(byId("group-by")),
      o: () => nextOption(byId("order-by")),
      t: () => byId("theme").click(),
    });
    this.showOpened();
    for (const poll of Object.values(this.polls)) poll.start();
  }

  // Asking.

  async askCluster(signal) {
    const known = this.cluster ? `?known=${this.cluster.version}` : "";
    const answer = await ask(`api/cluster${known}`, signal);
    const lists = answer.names ? withOrder(answer) : this.cluster;
    const {names, zones, racks, nameOrder} = lists;
    this.cluster = {...answer, names, zones, racks, nameOrder};
    setText(byId("mode"), answer.mode);
    setText(byId("as-of"), timeOfDay(answer.time));
    this.heat.show(this.cluster);
    this.busiest.show(this.cluster);
    this.showSummary();
  }

  async askDecisions(signal) {
    const before = this.decisions.last;
    const answer = await ask(`api/decisions?after=${before}&limit=${MOST}`, signal);
    if (answer.last < before) {
      this.decisions.forget();
      return this.askDecisions(signal);
    }
    this.decisions.take(answer);
    const {pod} = opened();
    if (pod) this.podView.show(pod, this.decisions.newestOf(pod));
  }

  async askHealth(signal) {
    this.health.show(await ask("api/health", signal));
    this.showSummary();
  }

  showSummary() {
    if (this.cluster) showSummary(this.cluster, this.health.shown);
  }

  hear(kind) {
    return (failure, waitSeconds) => {
      if (failure) {
        if (!this.failures.size) this.awaySince = Date.now() / 1000;
        this.failures.set(kind, waitSeconds);
        const inSeconds = counted(Math.round(Math.min(...this.failures.values())), "second");
        setText(byId("banner"), `No answer since ${timeOfDay(this.awaySince)}: ${failure.message}. What you see is from before; asking again in ${inSeconds}.`);
      } else if (this.failures.delete(kind) && !this.failures.size) {
        for (const poll of Object.values(this.polls)) poll.now();
      }
      byId("banner").hidden = !this.failures.size;
      document.body.classList.toggle("away", this.failures.size > 0);
    };
  }

  // What is open.

  showOpened() {
    const {pod, node} = opened();
    const was = {pod: this.podView.pod, node: this.nodeView.name};
    byId("cluster-view").hidden = pod !== null;
    byId("decisions-view").hidden = node !== null;
    this.podView.show(pod);
    this.nodeView.show(node);
    this.decisions.mark(pod);
    this.heat.choose(node);
    document.title = [pod, node, "Lowtide"].filter(Boolean).join(" · ");
    this.moveFocus({pod, node}, was);
  }

  // Into what was opened, or back to where it was opened from.
  moveFocus(now, was) {
    if (now.pod && now.pod !== was.pod) this.podView.focus();
    else if (now.node && now.node !== was.node) this.nodeView.focus();
    for (const kind of ["pod", "node"]) {
      if (was[kind] && !now[kind]) this.goBack(kind);
    }
  }

  goBack(kind) {
    const opener = this.openers.get(kind);
    this.openers.delete(kind);
    if (opener?.isConnected && opener.getClientRects().length) opener.focus();
    else if (opened().pod) this.podView.focus();
    else if (opened().node) this.nodeView.focus();
    else if (kind === "pod") this.goToDecisions();
    else this.goToHeatMap();
  }

  openFrom(change) {
    this.remember(document.activeElement, Object.keys(change)[0]);
    open(change);
  }

  remember(element, kind = element?.dataset.pod ? "pod" : "node") {
    if (element) this.openers.set(kind, element);
  }

  goToHeatMap() {
    if (opened().pod) open({pod: null});
    byId("heat-marks").focus({focusVisible: true});
  }

  goToDecisions(element = null) {
    if (opened().node) open({node: null});
    if (element) element.focus();
    else this.decisions.focus();
  }

  nodeWords(row) {
    const {names, zones, racks, share, receive, transmit, capacity, state, is_hot: isHot, pods, cpu} = this.cluster;
    const placed = [zones[row], racks[row]].filter(Boolean).join(", ");
    const hot = isHot[row] === "1" ? ", hot" : "";
    const unsure = state[row] === "f" ? "" : `, ${STATE_WORDS[state[row]]}`;
    return [names[row], [
      share[row] === null ? STATE_WORDS[state[row]] : `${percent(share[row])} of ${bits(capacity[row])}${hot}${unsure}`,
      receive[row] === null ? null : `${bits(receive[row])} in, ${bits(transmit[row])} out`,
      `${counted(pods[row], "pod")}, ${percent(cpu[row])} of its cpu requested`,
      placed || null,
    ].filter(Boolean)];
  }
}

function withOrder(answer) {
  const nameOrder = answer.names.map((_, row) => row);
  nameOrder.sort((a, b) => IN_ORDER.compare(answer.names[a], answer.names[b]));
  return {...answer, nameOrder};
}

function nextOption(select) {
  select.selectedIndex = (select.selectedIndex + 1) % select.options.length;
  select.dispatchEvent(new Event("change"));
}

new Page().run();
