// Draws what the server has worked out. A chart is <div class="chart" data-chart="ID"> with a place to draw in and a
// <script type="application/json" id="ID"> that holds {data, layout}. Colours are names of custom properties ("--ink"),
// put in here, so that a chart follows the colour scheme of the system. plotly.js is large, so it is loaded when the
// page is complete and idle; until then a chart shows the picture of the server, if it has one.
"use strict";

const plotlyAddress = document.currentScript.dataset.plotly;
const pageIdle = new Promise((resolve) => {
  const wait = () => (window.requestIdleCallback ?? setTimeout)(resolve);
  if (document.readyState === "complete") wait();
  else window.addEventListener("load", wait);
});
let plotly = null;
const plotlyLoad = async () => {
  await pageIdle;
  const script = Object.assign(document.createElement("script"), { src: plotlyAddress });
  await new Promise((resolve) => { script.onload = resolve; document.head.append(script); });
};

const scheme = window.matchMedia("(prefers-color-scheme: dark)");

const colours = (value, style) => {
  if (typeof value === "string") return value.startsWith("--") ? style.getPropertyValue(value).trim() : value;
  if (Array.isArray(value)) return value.map((each) => colours(each, style));
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, colours(each, style)]));
  return value;
};

const template = {
  layout: {
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: "--ink-soft" },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 48, r: 12, t: 12, b: 40 },
    xaxis: { gridcolor: "--chart-grid", zerolinecolor: "--line", linecolor: "--line", automargin: true },
    yaxis: { gridcolor: "--chart-grid", zerolinecolor: "--line", linecolor: "--line", automargin: true, rangemode: "tozero" },
    hoverlabel: { bgcolor: "--surface", bordercolor: "--line-strong", font: { color: "--ink" } },
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" },
    bargap: 0.08, hovermode: "x unified", dragmode: false,
  },
};

const chartDraw = async (chart) => {
  await (plotly ??= plotlyLoad());
  const source = document.getElementById(chart.dataset.chart);
  const plot = chart.querySelector(".plot");
  if (!source || !plot) return;
  const figure = JSON.parse(source.textContent);
  const style = getComputedStyle(document.documentElement);
  const layout = { ...figure.layout, template, autosize: true };
  window.Plotly.react(plot, colours(figure.data, style), colours(layout, style), {
    displayModeBar: false, responsive: true, ...(figure.config || {}),
  }).then(() => chart.dispatchEvent(new CustomEvent("chart:drawn", { bubbles: true, detail: { plot, figure } })));
};

const chartsDraw = (root) => {
  if (root.matches?.("[data-chart]")) chartDraw(root);
  root.querySelectorAll?.("[data-chart]").forEach(chartDraw);
};

document.addEventListener("DOMContentLoaded", () => chartsDraw(document));
document.addEventListener("htmx:load", (event) => chartsDraw(event.detail.elt));
scheme.addEventListener("change", () => chartsDraw(document));
