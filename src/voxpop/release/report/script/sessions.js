// How sessions go: bars with their intervals.
function drawSessions() {
  if (!FACTS.sessions.starts) return;
  draw("chart-starts", (width) => sharesChart(FACTS.sessions.starts, width));
  draw("chart-paths", (width) => sharesChart(FACTS.sessions.paths, width));
  draw("chart-session-lengths", sessionLengthsChart);
}

const WHISKER = { stroke: "var(--second)", strokeWidth: 2.2 };
const shareOf = (each) => `${each.name}\n${percent(each.share)} (${percent(each.low)} to ${percent(each.high)})`;

// Bars that lie, the first on top; names stand above their bars where there is no room beside them.
function sharesChart(rows, width) {
  const longest = Math.max(...rows.map((each) => each.name.length));
  const margin = Math.min(7 * longest + 16, Math.round(0.45 * width));
  const fits = Math.floor((margin - 16) / 7);
  return Plot.plot({
    className: CLASS, width, height: 40 + 24 * rows.length, marginLeft: margin, marginRight: 52, marginTop: 6, marginBottom: 34,
    style: { fontSize: "12px" },
    x: { label: null, grid: true, ticks: width < 460 ? 3 : 5, tickFormat: (share) => percentTick(share), tickSize: 0 },
    y: { label: null, domain: rows.map((each) => each.name), tickSize: 0, padding: 0.25, tickFormat: (name) => shortened(name, fits) },
    marks: [
      Plot.barX(rows, { x: "share", y: "name", fill: "var(--bar)" }),
      Plot.ruleY(rows, { x1: "low", x2: "high", y: "name", ...WHISKER }),
      Plot.text(rows, { x: "high", y: "name", text: (each) => percent(each.share), textAnchor: "start", dx: 7 }),
      Plot.ruleX([0]),
    ],
  });
}

function sessionLengthsChart(width) {
  const rows = FACTS.sessions.lengths;
  const every = Math.ceil(rows.length / (width / 28));
  return Plot.plot({
    className: CLASS, width, height: 300, marginLeft: 46, marginTop: 14, marginBottom: 42, style: { fontSize: "12px" },
    x: { label: "symbols", domain: rows.map((each) => each.name), tickSize: 0, padding: 0.25, tickFormat: (name, place) => (place % every ? "" : name) },
    y: { label: null, grid: true, ticks: 5, tickFormat: (share) => percentTick(share), tickSize: 0 },
    marks: [
      Plot.barY(rows, { x: "name", y: "share", fill: "var(--bar)" }),
      Plot.ruleX(rows, { y1: "low", y2: "high", x: "name", ...WHISKER }),
      Plot.tip(rows, Plot.pointerX({ x: "name", y: "share", title: shareOf, fill: "var(--card)", stroke: "var(--line)" })),
      Plot.ruleY([0]),
    ],
  });
}

const percentTick = (share) => `${+(100 * share).toFixed(1)} %`;
const shortened = (name, most) => (name.length <= most ? name : `${name.slice(0, Math.max(1, most - 1))}…`);
