// What is shown once, and examples, go to the clipboard. Where a browser does not let it (plain http), it is selected instead.
"use strict";

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copies]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copies);
  let said = "Copied";
  try {
    await navigator.clipboard.writeText(source.textContent);
  } catch {
    getSelection().selectAllChildren(source);
    said = "Selected";
  }
  button.textContent = said;
  document.querySelector("[data-copied]").textContent = said === "Copied" ? "Copied to the clipboard." : "Selected.";
});
