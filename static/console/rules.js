// The form of a rule: only comparisons that the chosen field takes can be chosen, and a kind or a scope is completed. The
// server checks all of it.
"use strict";

const signs = JSON.parse(document.getElementById("rule-signs").textContent);

const rowFit = (row) => {
  const what = row.querySelector("[name=row-what]").value;
  const op = row.querySelector("[name=row-op]");
  const fitting = signs[what];
  if (!fitting) return;
  for (const option of op.options) { option.hidden = option.disabled = !fitting.includes(option.value); }
  if (op.selectedOptions[0]?.disabled) op.value = fitting[0];
  rowComplete(row.querySelector("[name=row-value]"), what, op.value);
};

// Only these fields have values that the store knows. htmx reads an address once, so it has to be given the field anew.
const rowComplete = (value, what, op) => {
  const known = { kind: op === "is" || op === "is_not" ? "kind" : "kinds", scope: "scope" }[what];
  value.dataset.suggests ??= value.getAttribute("hx-get");
  value.list.replaceChildren();
  if (known) value.setAttribute("hx-get", value.dataset.suggests.replace("/kind/", `/${known}/`));
  else value.removeAttribute("hx-get");
  htmx.process(value);
};

const rowsFit = (root) => root.querySelectorAll?.(".rule-row").forEach(rowFit);
document.addEventListener("change", (event) => {
  if (event.target.matches("[name=row-what], [name=row-op]")) rowFit(event.target.closest(".rule-row"));
});
document.addEventListener("htmx:load", (event) => rowsFit(event.detail.elt));
rowsFit(document);
