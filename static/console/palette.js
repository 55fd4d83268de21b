// The command palette: Ctrl-K opens it, the arrows choose, Enter follows. Without script its button leads to the search.
"use strict";

const palette = () => document.getElementById("palette");
const paletteInput = () => document.getElementById("palette-input");
const paletteOptions = () => [...document.querySelectorAll("#palette-list [role=option]")];

// What was typed may still be on its way: "swap", or "follow" after Enter.
let paletteAwaited = null;
const paletteChoose = (option) => {
  for (const each of paletteOptions()) each.setAttribute("aria-selected", String(each === option));
  if (option) paletteInput().setAttribute("aria-activedescendant", option.id);
  else paletteInput().removeAttribute("aria-activedescendant");
  option?.scrollIntoView({ block: "nearest" });
};
const paletteOpen = () => {
  const dialog = palette();
  if (!dialog || dialog.open || document.querySelector("dialog[open]")) return;
  paletteInput().value = "";
  paletteAwaited = "swap";
  dialog.showModal();
  htmx.trigger(paletteInput(), "palette");
};

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
    event.preventDefault();
    if (palette()?.open) palette().close();
    else paletteOpen();
    return;
  }
  if (event.target.id !== "palette-input") return;
  const options = paletteOptions();
  const at = options.findIndex((option) => option.getAttribute("aria-selected") === "true");
  const to = { ArrowDown: at + 1, ArrowUp: at - 1 + options.length }[event.key];
  if (to !== undefined) {
    event.preventDefault();
    if (options.length) paletteChoose(options[to % options.length]);
  } else if (event.key === "Enter") {
    event.preventDefault();
    if (paletteAwaited) paletteAwaited = "follow";
    else options[at]?.click();
  }
});
document.addEventListener("input", (event) => {
  if (event.target.id === "palette-input") paletteAwaited = "swap";
});
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-palette]") && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    paletteOpen();
  }
  // The dialog itself is hit beside what it holds.
  if (event.target === palette()) palette().close();
});
// What the head of this page offers, as far as it has every word of what was typed. Nothing of it is chosen before.
const paletteHere = () => {
  const words = paletteInput().value.toLowerCase().split(/\s+/);
  const acts = [...document.querySelectorAll(".page-actions :is(a, button)")].filter((act) => {
    const label = act.textContent.trim().toLowerCase();
    return !act.disabled && act.checkVisibility() && label && words.every((word) => label.includes(word));
  });
  if (acts.length === 0) return;
  const group = Object.assign(document.createElement("div"), { role: "group", ariaLabel: "On this page" });
  group.append(Object.assign(document.createElement("p"), { className: "palette-group", ariaHidden: "true", textContent: "On this page" }));
  acts.forEach((act, at) => {
    const option = Object.assign(document.createElement("a"), { id: `palette-here-${at}`, href: act.href ?? "#", role: "option", tabIndex: -1, ariaSelected: "false" });
    option.append(Object.assign(document.createElement("span"), { className: "palette-label", textContent: act.textContent.trim() }));
    option.addEventListener("click", (event) => {
      event.preventDefault();
      palette().close();
      act.click();
    });
    group.append(option);
  });
  const list = document.getElementById("palette-list");
  if (words.join("")) list.prepend(group);
  else list.append(group);
};
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target.id !== "palette-list") return;
  paletteHere();
  const first = paletteOptions()[0];
  paletteChoose(first);
  // An answer to what was typed before says nothing of what is typed now.
  if (event.detail.requestConfig.parameters.q !== paletteInput().value) return;
  if (paletteAwaited === "follow") first?.click();
  paletteAwaited = null;
});
