// A bar of the last days leads to its list, and what was folded away in the health stays so when it refreshes.
"use strict";

document.addEventListener("chart:drawn", (event) => {
  const { plot } = event.detail;
  if (event.target.dataset.chart !== "activity-chart" || plot.dataset.leads) return;
  plot.dataset.leads = "yes";
  plot.on("plotly_click", ({ points, event: click }) => {
    // Under the pointer are all bars of the day; the one that was hit leads.
    const hit = points.find((point) => {
      const box = point.bbox;
      const x = click.clientX - plot.getBoundingClientRect().left;
      return box && x >= box.x0 && x <= box.x1;
    }) || points[0];
    if (hit?.customdata) location.assign(hit.customdata);
  });
});

let folded = false;
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target.id === "health") folded = document.getElementById("health-well")?.open === false;
});
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target.id === "health" && folded) document.getElementById("health-well")?.removeAttribute("open");
});
