// The form of a rule: only comparisons that the chosen field takes can be chosen. The server checks all of it.
"use strict";

const signs = JSON.parse(document.getElementById("rule-signs").textContent);

const rowFit = (row) => {
  const what = row.querySelector("[name=row-what]").value;
  const op = row.querySelector("[name=row-op]");
  const fitting = signs[what];
  if (!fitting) return;
  for (const option of op.options) { option.hidden = option.disabled = !fitting.includes(option.value); }
  if (op.selectedOptions[0]?.disabled) op.value = fitting[0];
};

const rowsFit = (root) => root.querySelectorAll?.(".rule-row").forEach(rowFit);
document.addEventListener("change", (event) => {
  if (event.target.name === "row-what") rowFit(event.target.closest(".rule-row"));
});
document.addEventListener("htmx:load", (event) => rowsFit(event.detail.elt));
rowsFit(document);
