// Colours: as the system, light or dark.
const THEMES = ["auto", "light", "dark"];

function startTheme() {
  const button = byId("theme");
  let kept = null;
  try { kept = localStorage.getItem("voxpop-theme"); } catch { /* no storage: as the system */ }
  const apply = (theme) => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.querySelector("span").textContent = theme;
    button.setAttribute("aria-label", `Colours: ${theme === "auto" ? "as the system" : theme}`);
    button.dataset.theme = theme;
  };
  apply(THEMES.includes(kept) ? kept : "auto");
  button.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(button.dataset.theme) + 1) % THEMES.length];
    apply(next);
    try { localStorage.setItem("voxpop-theme", next); } catch { /* not kept */ }
  });
}
