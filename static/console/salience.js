// The curve: thresholds as lines to drag. What a moved line comes to is asked of the server, which answers with
// the parts of the page that change and with the figure; nothing is worked out here.
"use strict";

const draftForm = document.getElementById("salience-form");
const draftChart = draftForm.querySelector("[data-chart='salience-chart']");
const draftSource = document.getElementById("salience-chart");
const effect = document.getElementById("salience-effect");
const save = draftForm.querySelector("#save button");
const SETTLED_MS = 120;

let figure = JSON.parse(draftSource.textContent);
let plot = null;
let dragging = false;
let timer = 0;

// Places on the axis and scores, as memory/console/salience_figure.py has them.
const linear = () => figure.scale === "linear";
const placeOf = (score) => (linear() ? score : Math.log10(Math.max(score, figure.least)));
const scoreOf = (place) => {
  if (linear()) return Math.max(0, place);
  return place <= Math.log10(figure.least) ? 0 : 10 ** place;
};
const rounded = (score) => Number(score.toPrecision(3));
const fieldOf = (line) => draftForm.elements[line.name];

const ask = () => {
  if (save) save.disabled = false;
  clearTimeout(timer);
  timer = setTimeout(() => { timer = 0; htmx.trigger(draftForm, "draft:settled"); }, SETTLED_MS);
};

// --- Lines --------------------------------------------------------------------------------------------------------
// Where all lines and their words are after one has moved, placed as the server places them.
const lineMove = (at, value) => {
  figure.lines[at].value = value;
  const [low, high] = figure.layout.xaxis.range;
  const places = figure.lines.map((line) => placeOf(line.value));
  const shares = places.map((place) => (place - low) / (high - low));
  const left = shares.map((share) => Math.max(...shares) > figure.turns && share > figure.left);
  const all = [...places.keys()];
  const rows = [...all.filter((each) => left[each]).reverse(), ...all.filter((each) => !left[each])];
  const update = {};
  all.forEach((each) => {
    const x = places[each];
    const y = 1 - figure.row * rows.indexOf(each);
    const words = { x, y, text: `${figure.lines[each].word} ${rounded(figure.lines[each].value)}`, xanchor: left[each] ? "right" : "left", xshift: left[each] ? -3 : 3 };
    for (const [name, to] of Object.entries({ x0: x, x1: x, y0: 0, y1: y })) update[`shapes[${each}].${name}`] = to;
    for (const [name, to] of Object.entries(words)) update[`annotations[${each}].${name}`] = to;
  });
  return update;
};

// A line stops at its neighbours: summarizing starts no lower than detaching, and that no lower than archiving.
const between = (at, value) => {
  const low = at > 0 ? figure.lines[at - 1].value : 0;
  const high = at < figure.lines.length - 1 ? figure.lines[at + 1].value : Infinity;
  return Math.min(Math.max(value, low), high);
};

const lineDragged = (at, place) => {
  const value = rounded(between(at, scoreOf(place)));
  const field = fieldOf(figure.lines[at]);
  if (Number(field.value || NaN) === value) return value;
  field.value = String(value);
  ask();
  return value;
};

// The words of a line go with it. To draw the chart anew would end the drag, so only they are moved.
const wordsMove = (at, value) => {
  const words = plot.querySelector(`.annotation[data-index="${at}"]`);
  if (!words) return;
  const { l2p } = plot._fullLayout.xaxis;
  words.setAttribute("transform", `translate(${l2p(placeOf(value)) - l2p(placeOf(figure.lines[at].value))},0)`);
  words.querySelector("text").textContent = `${figure.lines[at].word} ${rounded(value)}`;
};

// While a line is on its way, its shape knows where it is before the chart says so.
const lineWatch = () => {
  if (!dragging || !plot) return;
  plot._fullLayout.shapes.forEach((shape, at) => {
    const known = placeOf(figure.lines[at].value);
    const moved = [shape.x0, shape.x1].find((place) => Math.abs(place - known) > 1e-9);
    if (moved !== undefined) wordsMove(at, lineDragged(at, moved));
  });
};

const lineDropped = (changes) => {
  const update = {};
  for (const [name, place] of Object.entries(changes)) {
    const [, at, member] = /^shapes\[(\d+)\]\.([xy][01])$/.exec(name) || [];
    if (at === undefined) continue;
    const line = figure.lines[at];
    if (member[0] === "x" && Math.abs(place - placeOf(line.value)) > 1e-9) line.value = lineDragged(Number(at), place);
    Object.assign(update, lineMove(Number(at), line.value));
  }
  if (Object.keys(update).length) redraw(update);
};

let drawing = false;
const redraw = (update) => {
  drawing = true;
  window.Plotly.relayout(plot, update).finally(() => { drawing = false; });
};

draftChart.addEventListener("chart:drawn", (event) => {
  if (plot) return;
  plot = event.detail.plot;
  plot.on("plotly_relayout", (changes) => { if (!drawing) lineDropped(changes); });
  plot.on("plotly_click", ({ points: [bar] }) => {
    if (figure.lookup) location.assign(`${figure.lookup}${encodeURIComponent(` rung:${bar.data.name} ${figure.bins[bar.pointNumber]}`)}`);
  });
  plot.addEventListener("pointerdown", () => { dragging = true; });
  window.addEventListener("pointermove", lineWatch);
  for (const name of ["pointerup", "pointercancel"]) window.addEventListener(name, () => { dragging = false; });
});

// --- Fields -------------------------------------------------------------------------------------------------------
draftForm.addEventListener("input", (event) => {
  const at = figure.lines.findIndex((line) => line.name === event.target.name);
  const value = Number(event.target.value || NaN);
  if (at >= 0 && plot && Number.isFinite(value) && value >= 0) redraw(lineMove(at, value));
  ask();
});

// What is left empty says nothing, so addresses stay short.
draftForm.addEventListener("formdata", (event) => {
  for (const [name, value] of [...event.formData.entries()]) if (value === "") event.formData.delete(name);
});
// A question about the draft is the draft alone; one that no address can hold is sent as a form.
const ELSEWHERE = ["csrfmiddlewaretoken", "save", "backtest", "load", "aside", "swap", "drop", "again", "since", "until", "step"];
const fits = (members) => members.toString().length <= Number(draftForm.dataset.mostAddress);
draftForm.addEventListener("htmx:configRequest", (event) => {
  const asked = event.detail.parameters;
  // While a button is pressed, htmx would send the question to the address of that button.
  event.detail.path = draftForm.getAttribute("hx-get");
  for (const name of Object.keys(asked)) if (asked[name] === "" || ELSEWHERE.includes(name)) delete asked[name];
  if (!fits(new URLSearchParams(Object.entries(asked)))) {
    event.detail.verb = "post";
    event.detail.useUrlParams = false;
    event.detail.headers["Content-Type"] = "application/x-www-form-urlencoded";
  }
});

// What is sent is what the fields say now: nothing is asked about it any more. Whoever comes back to the address that a
// save leads to finds the draft there.
draftForm.addEventListener("submit", (event) => {
  clearTimeout(timer);
  timer = 0;
  htmx.trigger(draftForm, "htmx:abort");
  const button = event.submitter;
  if (button?.dataset.keeps === undefined) return;
  const members = new URLSearchParams(new FormData(draftForm));
  for (const name of ELSEWHERE) members.delete(name);
  if (fits(members)) button.formAction = `${button.dataset.keeps}?${members}`;
});

// --- Answers ------------------------------------------------------------------------------------------------------
// A draft that is not valid cannot be saved until it changes.
const saveShow = () => { if (save) save.disabled = effect.querySelector("[data-refusals]") !== null; };
saveShow();

const refusalsShow = () => {
  draftForm.querySelectorAll(".field > .errorlist").forEach((list) => list.remove());
  draftForm.querySelectorAll("[aria-invalid]").forEach((field) => field.removeAttribute("aria-invalid"));
  effect.querySelectorAll("[data-refusals] [data-field]").forEach((said) => {
    const field = draftForm.elements[said.dataset.field];
    if (!field) return;
    field.setAttribute("aria-invalid", "true");
    const list = document.createElement("ul");
    list.className = "errorlist";
    list.append(Object.assign(document.createElement("li"), { textContent: said.textContent }));
    field.closest(".field")?.append(list);
  });
};

const heldShow = (held) => {
  for (const [name, { value, source }] of Object.entries(held)) {
    if (draftForm.elements[name]) draftForm.elements[name].placeholder = value;
    const words = draftForm.querySelector(`[data-source="${name}"]`);
    if (words) words.textContent = source;
  }
};

effect.addEventListener("htmx:afterSwap", (event) => {
  if (event.target !== effect) return;
  refusalsShow();
  saveShow();
  const next = document.getElementById("salience-figure");
  if (!next || effect.querySelector("[data-refusals]")) return;
  heldShow(JSON.parse(document.getElementById("salience-held").textContent));
  // A line that is still on its way is not pulled back; the answer to where it ends up is yet to come.
  if (dragging || timer) return;
  draftSource.textContent = next.textContent;
  figure = JSON.parse(next.textContent);
  chartDraw(draftChart);
});
