// What somebody folded or unfolded in the health stays so when it refreshes.
"use strict";

let unfolded;
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target.id === "health") unfolded = document.getElementById("health-well")?.open;
});
document.addEventListener("htmx:afterSwap", (event) => {
  const lines = document.getElementById("health-well");
  if (event.detail.target.id === "health" && lines && unfolded !== undefined) lines.open = unfolded;
});
