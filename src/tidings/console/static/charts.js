// Charts of /v1/pipeline, drawn as SVG and refreshed every few seconds while the page is visible.
const charts = document.getElementById("charts");
const state = document.getElementById("live");
const words = document.getElementById("live-words");
const EVERY = 2000;
const SAYING = 10; // seconds a step must have lasted before its rate is meaningful
const WIDE = 600;
const HIGH = 120;
const SVG = "http://www.w3.org/2000/svg";

const drawn = {
  rate: (one, seconds) => one.total / seconds,
  sum: (one) => one.total,
  mean: (one) => (one.count ? one.total / one.count : 0),
  most: (one) => one.most,
};

/** Numbers with three significant digits. */
function shown(value) {
  return value.toLocaleString("en", { maximumSignificantDigits: value < 1000 ? 3 : 4 });
}

function shape(name, kind, points) {
  const made = document.createElementNS(SVG, name);
  made.setAttribute("class", kind);
  made.setAttribute(name === "path" ? "d" : "points", points);
  return made;
}

/** The points of a line. Steps without a value count as zero for counters; gauges keep their value. */
function points(line, answer, begin, end) {
  const series = new Map((answer.series[line.dataset.measure] ?? []).map((one) => [Date.parse(one.at), one]));
  const isCounted = line.dataset.drawn === "rate" || line.dataset.drawn === "sum";
  const step = answer.step * 1000;
  const found = [];
  if (series.size === 0) return found;
  const first = Math.min(...series.keys());
  for (const moment of isCounted ? range(first, end, begin, step) : [...series.keys()].sort((a, b) => a - b)) {
    if (moment < begin) continue; // a step that began earlier is only partly known
    const one = series.get(moment);
    const lasted = Math.min(answer.step, (end - moment) / 1000);
    if (line.dataset.drawn === "rate" && lasted < Math.min(SAYING, answer.step)) continue;
    found.push([moment, one ? drawn[line.dataset.drawn](one, lasted) : 0]);
  }
  return found;
}

function* range(first, end, begin, step) {
  let moment = first;
  while (moment - step >= begin) moment -= step;
  for (; moment < end; moment += step) yield moment;
}

function draw(chart, answer, begin, end) {
  const lines = [...chart.querySelectorAll("[data-measure]")].map((line) => points(line, answer, begin, end));
  const most = Math.max(...lines.flat().map(([, value]) => value), 0);
  const x = (moment) => (((moment - begin) / (end - begin)) * WIDE).toFixed(1);
  const y = (value) => (HIGH - 4 - (most ? value / most : 0) * (HIGH - 12)).toFixed(1);
  const svg = chart.querySelector("svg");
  svg.replaceChildren(shape("path", "grid", `M0 ${HIGH - 4}H${WIDE}M0 8H${WIDE}`));
  lines.forEach((line, at) => {
    if (line.length === 0) return;
    if (line.length === 1) line.push([line[0][0] + answer.step * 1000, line[0][1]]); // draw a single point as a step
    const way = line.map(([moment, value]) => `${x(moment)},${y(value)}`).join(" ");
    if (at === 0) svg.append(shape("polygon", "under", `${x(line[0][0])},${HIGH - 4} ${way} ${x(line.at(-1)[0])},${HIGH - 4}`));
    svg.append(shape("polyline", at === 0 ? "drawn" : "drawn second", way));
  });
  const unit = chart.dataset.unit ? ` ${chart.dataset.unit}` : "";
  const last = answer.now[chart.dataset.stands] ?? lines[0].at(-1)?.[1];
  const now = last === undefined ? "not measured yet" : `${shown(last)}${unit}`;
  chart.querySelector(".now").textContent = now;
  chart.querySelector(".from").textContent = clock(begin);
  chart.querySelector(".to").textContent = clock(end);
  chart.querySelector(".most").textContent = lines.flat().length ? `most ${shown(most)}${unit}` : "";
  svg.setAttribute("aria-label", `${chart.querySelector("h2").textContent}: now ${now}, most ${shown(most)}${unit}`);
}

function clock(moment) {
  const isToday = Number(charts.dataset.minutes) <= 720;
  return new Date(moment).toLocaleString(undefined, { timeStyle: "short", ...(isToday ? {} : { dateStyle: "short" }) });
}

function tell(answer) {
  for (const place of document.querySelectorAll("[data-now]")) {
    place.textContent = answer.now[place.dataset.now].toLocaleString("en");
  }
  const runs = document.querySelector("#runs .state");
  const [look, words] = answer.now.runs ? ["good", "stream running"] : answer.now.starts ? ["warn", "stream starting"] : ["bad", "no stream running"];
  runs.className = `state ${look}`;
  runs.textContent = words;
  const begin = Date.parse(answer.since);
  const end = begin + Number(charts.dataset.minutes) * 60_000; // by the clock of the service
  for (const chart of charts.querySelectorAll(".chart")) draw(chart, answer, begin, end);
  charts.hidden = false;
}

async function ask() {
  if (document.hidden) return;
  try {
    const answer = await fetch(`/v1/pipeline?minutes=${charts.dataset.minutes}&points=${charts.dataset.points}`);
    if (!answer.ok) throw new Error(`${answer.status}`);
    tell(await answer.json());
    state.className = "live quiet on";
    words.textContent = "live";
  } catch {
    state.className = "live quiet off";
    words.textContent = "not live: the service does not answer";
  }
  state.hidden = false;
}

document.addEventListener("visibilitychange", ask);
setInterval(ask, EVERY);
ask();
