// The keys that work anywhere on the page.

import {byId} from "./elements.js";
import {closeLast} from "./selection.js";

// `actions` maps a key to what it does.
export function startKeys(actions) {
  const dialog = byId("keys");
  const showKeys = () => dialog.showModal();
  byId("show-keys").addEventListener("click", showKeys);
  document.addEventListener("keydown", (event) => {
    if (dialog.open || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      if (event.target.matches?.("input") && event.target.value) return; // which the browser empties
      if (closeLast()) event.preventDefault();
      return;
    }
    if (event.target.matches?.("input, select, textarea")) return;
    const action = event.key === "?" ? showKeys : actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}
