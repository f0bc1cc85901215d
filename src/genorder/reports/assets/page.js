"use strict";
(() => {
  const root = document.documentElement;
  const dark = () => root.dataset.theme
    ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const colours = () => dark()
    ? { text: "#e8eaed", grid: "#3a3f48", card: "#1e2127", scale: [[0, "#1e2b38"], [0.5, "#3d86b8"], [1, "#d9f0ff"]] }
    : { text: "#1a1c20", grid: "#d3d7dd", card: "#ffffff", scale: [[0, "#e6f0f7"], [0.5, "#3a8fc4"], [1, "#00304f"]] };
  const plots = [];

  const themed = (element, figure) => {
    const { text, grid, card, scale } = colours();
    const layout = JSON.parse(JSON.stringify(figure.layout));
    layout.font = { color: text, size: 12, family: "system-ui, sans-serif" };
    layout.hoverlabel = { bgcolor: card, bordercolor: grid, font: { color: text } };
    for (const name of ["xaxis", "yaxis"]) {
      layout[name] = { ...layout[name], gridcolor: grid, linecolor: grid, zerolinecolor: grid, tickcolor: grid,
        fixedrange: true };
    }
    if (layout.yaxis.scaleanchor) {  // a square is no higher than the page is wide
      layout.height = Math.min(layout.height, element.clientWidth);
      layout.xaxis.tickfont = layout.yaxis.tickfont = { size: 10 };
    }
    const data = figure.data.map((trace) => trace.meta === "matrix" ? { ...trace, colorscale: scale } : trace);
    return { data, layout };
  };

  const draw = () => {
    for (const { element, figure } of plots) {
      const { data, layout } = themed(element, figure);
      Plotly.react(element, data, layout, { displayModeBar: false, responsive: true });
    }
  };

  const button = document.getElementById("theme");
  const label = () => {
    button.textContent = dark() ? "Light" : "Dark";
    button.setAttribute("aria-label", dark() ? "Use light colours" : "Use dark colours");
    button.setAttribute("aria-pressed", String(dark()));
  };
  const show = () => { label(); draw(); };
  const keep = (theme) => { try { localStorage.setItem("genorder-theme", theme); } catch { /* not allowed: then not kept */ } };
  try { root.dataset.theme = localStorage.getItem("genorder-theme") || ""; } catch { /* as the system has it */ }
  if (!["light", "dark"].includes(root.dataset.theme)) { delete root.dataset.theme; }
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    keep(root.dataset.theme);
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);

  let before;  // what printing must put back
  addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    root.dataset.theme = "light";
    show();
  });
  addEventListener("afterprint", () => {
    if (before) { root.dataset.theme = before; } else { delete root.dataset.theme; }
    show();
  });

  for (const script of document.querySelectorAll("script.figure-data")) {
    plots.push({ element: document.getElementById(script.dataset.plot), figure: JSON.parse(script.textContent) });
  }
  show();

  const seconds = Number(document.body.dataset.live);
  if (seconds) {
    const known = document.body.dataset.version;
    const ask = async () => {
      try {
        const state = await (await fetch("state", { cache: "no-store" })).json();
        if (state.version !== known) { location.reload(); return; }
        document.getElementById("progress").textContent = state.progress;
      } catch { /* the server is gone: the page stays as it is */ }
      setTimeout(ask, 1000 * seconds);
    };
    ask();
  }
})();
