// The pictures, by Observable Plot; colours are the page's own, so that themes need no redrawing.
const CLASS = "voxplot";
const COLOURS = { vote: "var(--bar)", forecast: "var(--second)", "not used": "var(--third)" };

function drawCharts() {
  draw("chart-lengths", lengthsChart);
  draw("chart-costs", costsChart);
  draw("chart-curves", curvesChart);
}

const redraws = [];

// Draw now and whenever the width changes; on paper at a width of its own.
function draw(id, make) {
  const box = byId(id);
  if (!box) return;
  let width = 0;
  const redraw = (now) => {
    if (now === width || !now) return;
    width = now;
    const picture = make(width);
    picture.setAttribute("aria-hidden", "true");
    box.replaceChildren(picture);
  };
  const fit = () => redraw(Math.floor(box.clientWidth));
  redraws.push((paper) => (paper ? redraw(box.closest(".pair") ? 470 : 680) : fit()));
  new ResizeObserver(fit).observe(box);
}

function lengthsChart(width) {
  const top = Math.max(...FACTS.lengths.map((each) => each.released));
  return Plot.plot({
    className: CLASS, width, height: 290, marginLeft: 58, marginTop: 26, marginBottom: 42, style: { fontSize: "12px" },
    x: { label: "tokens", type: "band", tickSize: 0, padding: 0.25 },
    y: { label: null, grid: true, domain: [0, top * 1.05], ticks: 5, tickFormat: (n) => many(n), tickSize: 0 },
    marks: [
      Plot.barY(FACTS.lengths, { x: "length", y: "released", fill: "var(--bar)", ry1: 3 }),
      Plot.text(FACTS.lengths, { x: "length", y: "released", text: (each) => many(each.released), dy: -9, fontSize: width < 460 ? 9.5 : 12 }),
      Plot.ruleY([0]),
    ],
  });
}

function costsChart(width) {
  const costs = FACTS.costs.map((each) => ({ ...each, name: each.length ? String(each.length) : "rest" }));
  const names = [...new Set(costs.map((each) => each.name))];
  const sums = names.map((name) => {
    const share = costs.filter((each) => each.name === name).reduce((sum, each) => sum + each.share, 0);
    return { name, share };
  });
  return Plot.plot({
    className: CLASS, width, height: 290, marginLeft: 58, marginTop: 26, marginBottom: 42, style: { fontSize: "12px" },
    x: { label: "tokens", domain: names, tickSize: 0, padding: 0.25 },
    y: { label: null, grid: true, ticks: 5, tickFormat: (share) => `${Math.round(100 * share)} %`, tickSize: 0 },
    marks: [
      Plot.barY(costs, { x: "name", y: "share", fill: (each) => COLOURS[each.part], order: null }),
      Plot.text(sums, { x: "name", y: "share", text: (each) => percent(each.share), dy: -9, fontSize: width < 460 ? 9.5 : 12 }),
      Plot.ruleY([0]),
    ],
  });
}

const percent = (share) => (share >= 0.0995 ? `${Math.round(100 * share)} %` : `${(100 * share).toFixed(1)} %`);

function curvesChart(width) {
  const points = FACTS.curves.flatMap(({ name, points: each }, place) =>
    each.map(([holders, chance]) => ({ name, place, holders: Math.max(1, holders), chance })));
  const least = Math.min(...points.map((each) => each.holders)), most = Math.max(...points.map((each) => each.holders));
  const colour = (place) => `oklch(var(--curve) 0.13 ${130 + Math.round((260 * place) / Math.max(3, FACTS.curves.length - 1))})`;
  const labels = FACTS.curves.map((_, place) => nearest(place, 0.5));
  const middles = labels.map((each) => Math.max(1, each.holders));
  const wide = Math.max(...middles) / Math.min(...middles) > 8;
  const start = wide ? least : 0;
  return Plot.plot({
    className: CLASS, width, height: 330, marginLeft: 50, marginRight: labelled(), marginTop: 30, marginBottom: 42,
    style: { fontSize: "12px" },
    x: { label: "users who have it", type: wide ? "log" : "linear", domain: [start, most], ticks: width < 460 ? 5 : 8, tickFormat: (n) => many(n), grid: true },
    y: { label: "released", domain: [0, 1], ticks: 5, tickFormat: (share) => `${Math.round(100 * share)} %`, grid: true },
    marks: [
      Plot.ruleY([0]),
      Plot.ruleY([0.5], { stroke: "var(--soft)", strokeDasharray: "3 4" }),
      Plot.lineY(points, { x: "holders", y: "chance", z: "place", stroke: (each) => colour(each.place), strokeWidth: 2.2, clip: true }),
      ...(labels.length > 3 ? legend(labels, colour) : besideCurves(labels, colour)),
      Plot.tip(points, Plot.pointerX({
        x: "holders", y: "chance", fill: "var(--card)", stroke: "var(--line)",
        title: (each) => `${each.name}\n${many(each.holders)} users: ${percent(each.chance)}`,
      })),
    ],
  });
}

function nearest(place, chance) {
  const { name, points } = FACTS.curves[place];
  const near = points.reduce((best, point) => (Math.abs(point[1] - chance) < Math.abs(best[1] - chance) ? point : best));
  return { name, place, holders: Math.max(1, near[0]), chance: near[1] };
}

// Room for the names beside curves.
function labelled() {
  return FACTS.curves.length > 3 ? 18 : 96;
}

// A few names stand beside their curves.
function besideCurves(labels, colour) {
  return labels.map((each, place) => Plot.text([nearest(each.place, [0.8, 0.5, 0.2][place])], {
    x: "holders", y: "chance", text: "name", textAnchor: "start", dx: 9, dy: 8, fill: colour(each.place), fontWeight: 600,
    stroke: "var(--paper)", strokeWidth: 4,
  }));
}

// Names in a column at the right bottom, below the curves.
function legend(labels, colour) {
  return labels.map((each, place) => Plot.text([each.name], {
    frameAnchor: "bottom-right", dx: -8, dy: -8 - 15 * (labels.length - 1 - place), text: (name) => `${name} ●`,
    fill: colour(each.place), fontWeight: 600, stroke: "var(--paper)", strokeWidth: 4,
  }));
}
