// Light, dark, or as the system has it; remembered by the browser.

const KEY = "lowtide-theme";
const NEXT = {system: "dark", dark: "light", light: "system"};

export function startTheme(button, changed) {
  const show = (theme) => {
    document.documentElement.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
    button.setAttribute("aria-label", `Theme: ${theme}; press for ${NEXT[theme]}`);
    changed();
  };
  button.addEventListener("click", () => {
    const theme = NEXT[document.documentElement.dataset.theme];
    try {
      localStorage.setItem(KEY, theme);
    } catch {} // a browser that keeps nothing asks again next time
    show(theme);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  show(remembered());
}

function remembered() {
  try {
    const theme = localStorage.getItem(KEY);
    return theme in NEXT ? theme : "system";
  } catch {
    return "system";
  }
}

export function isDark() {
  const theme = document.documentElement.dataset.theme;
  return theme === "dark" || (theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
}
