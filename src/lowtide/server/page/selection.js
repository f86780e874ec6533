// What is open, as the address tells it: #pod=NAMESPACE/NAME, #node=NAME, or both. Going back in
// the browser goes back here.

export function opened() {
  const said = new URLSearchParams(location.hash.slice(1));
  return {pod: said.get("pod"), node: said.get("node")};
}

export function open(change) {
  go({...opened(), ...change});
}

// Closes what was opened last: that is the later part of the address.
export function closeLast() {
  const last = [...new URLSearchParams(location.hash.slice(1)).keys()].filter((key) => key === "pod" || key === "node").pop();
  if (last) open({[last]: null});
  return Boolean(last);
}

export function onChange(listener) {
  addEventListener("popstate", listener);
  addEventListener("lowtide-opened", listener);
}

// A link to a pod keeps the open node, and the other way round.
export function followLinks() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-pod], a[data-node]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    open(link.dataset.pod ? {pod: link.dataset.pod} : {node: link.dataset.node});
  });
}

function go(wanted) {
  const before = opened();
  const pairs = Object.entries(wanted).filter(([, value]) => value);
  // What is new goes to the end.
  pairs.sort(([a], [b]) => Number(wanted[a] !== before[a]) - Number(wanted[b] !== before[b]));
  const hash = pairs.map(([key, value]) => `${key}=${encodeURIComponent(value).replaceAll("%2F", "/")}`).join("&");
  if (`#${hash}` === (location.hash || "#")) return;
  history.pushState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  dispatchEvent(new Event("lowtide-opened"));
}
