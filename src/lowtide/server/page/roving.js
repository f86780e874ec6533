// One stop of the Tab key for a list or a table; the arrow keys go on from there.

// `rows()` is a list of lists of the elements that can have the focus.
export function rove(container, rows) {
  container.addEventListener("keydown", (event) => {
    const to = target(rows(), document.activeElement, event.key);
    if (!to) return;
    event.preventDefault();
    focusOnly(container, to);
  });
  container.addEventListener("focusin", (event) => {
    if (event.target.hasAttribute("tabindex")) keepOnly(container, event.target);
  });
}

// After rows came or went: exactly one of them is reached by Tab.
export function keepOneStop(container, rows) {
  const all = rows().flat();
  if (!all.length) return;
  const stop = all.find((each) => each.tabIndex === 0) ?? all[0];
  if (all.filter((each) => each.tabIndex === 0).length !== 1) keepOnly(container, stop);
}

function focusOnly(container, element) {
  keepOnly(container, element);
  element.focus();
  element.scrollIntoView({block: "nearest", inline: "nearest"});
}

function keepOnly(container, element) {
  for (const each of container.querySelectorAll('[tabindex="0"]')) {
    if (each !== element) each.tabIndex = -1;
  }
  element.tabIndex = 0;
}

function target(rows, from, key) {
  const y = rows.findIndex((row) => row.includes(from));
  if (y < 0) return null;
  const x = rows[y].indexOf(from);
  switch (key) {
    case "ArrowDown": return rows[y + 1]?.[Math.min(x, rows[y + 1].length - 1)];
    case "ArrowUp": return rows[y - 1]?.[Math.min(x, rows[y - 1].length - 1)];
    case "ArrowRight": return rows[y][x + 1];
    case "ArrowLeft": return rows[y][x - 1];
    case "Home": return rows[0][0];
    case "End": return rows.at(-1).at(-1);
    default: return null;
  }
}
