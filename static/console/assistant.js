// The assistant's page: Ctrl and Enter send, and what is new comes into sight.
"use strict";

document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || !event.target.matches("[data-sends]")) return;
  event.preventDefault();
  event.target.form.requestSubmit();
});

// What comes after a message of one's own is followed; whoever has scrolled up to read stays there.
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target.id === "turns") event.detail.target.lastElementChild?.scrollIntoView({ block: "start" });
});
