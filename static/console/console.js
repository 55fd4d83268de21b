// What every page does with script. Without it, all of this is links and forms.
"use strict";

document.documentElement.classList.add("script");

const typing = (target) => target.closest("input, textarea, select, [contenteditable]") !== null;

document.addEventListener("click", (event) => {
  const closer = event.target.closest("[data-closes]");
  if (closer) closer.closest(closer.dataset.closes)?.remove();
  const opener = event.target.closest("[data-opens]");
  if (opener) document.getElementById(opener.dataset.opens)?.showModal();
});

// Enter in the reason beside a "Save" button saves. Elsewhere in the form, Enter only shows what the draft would do.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !event.target.matches(".save-bar input")) return;
  event.preventDefault();
  event.target.closest(".save-bar").querySelector("button").click();
});

// Keys: "/" to the search field, "?" for the list, "g" and a letter to a page.
let going = 0;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && typing(event.target)) return event.target.blur();
  if (typing(event.target) || document.querySelector("dialog[open]")) return;
  const soon = Date.now() - going < 1500;
  going = 0;
  if (event.key === "/") {
    event.preventDefault();
    const search = document.querySelector("[data-search]");
    if (search) search.focus();
    else document.querySelector("[data-go='m']")?.click();
  } else if (event.key === "?") {
    document.getElementById("shortcuts")?.showModal();
  } else if (event.key === "g" || soon) {
    // Both are for this listener alone: what follows "g" names a place, not what to do with a row.
    event.stopImmediatePropagation();
    if (soon) document.querySelector(`[data-go='${CSS.escape(event.key)}']`)?.click();
    else going = Date.now();
  }
});

document.addEventListener("click", (event) => { if (event.target.closest("[data-print]")) window.print(); });

// A form that somebody has begun to fill in is theirs until it is sent.
const dirty = (form) => form && form.dataset.dirty === "yes";
document.addEventListener("input", (event) => {
  const form = event.target.form;
  if (form) form.dataset.dirty = "yes";
});
document.addEventListener("submit", (event) => { delete event.target.dataset.dirty; });

// Parts that refresh themselves carry data-live: not while the tab is hidden, not over a form being edited, and not
// while somebody types, walks by keys or has a selection in what would be replaced.
document.addEventListener("htmx:beforeRequest", (event) => {
  const part = event.detail.elt;
  if (!part.hasAttribute("data-live") || event.detail.requestConfig.triggeringEvent?.type === "click") return;
  // What has not come yet is fetched wherever the tab is.
  if (part.dataset.live === "first") { part.dataset.live = ""; return; }
  const target = event.detail.target;
  const edited = [...target.querySelectorAll("form")].some(dirty) || (target.contains(document.activeElement) && (typing(document.activeElement) || document.activeElement.matches(":focus-visible")));
  const ticked = target.querySelector("input[type=checkbox][data-pick]:checked") !== null;
  if (document.hidden || edited || ticked) event.preventDefault();
});
// What was asked before somebody began to type may arrive afterwards.
document.addEventListener("htmx:beforeSwap", (event) => {
  const part = event.detail.requestConfig?.elt;
  if (part?.hasAttribute?.("data-live") && [...event.detail.target.querySelectorAll("form")].some(dirty)) event.detail.shouldSwap = false;
});

// An answer that is not the console's own, a proxy's error page say, never takes the place of a part of the page.
const noticeAdd = (sentence) => {
  const notice = document.createElement("div");
  notice.className = "notice error";
  notice.setAttribute("role", "alert");
  const words = document.createElement("div");
  words.textContent = sentence;
  const close = document.createElement("button");
  close.className = "close";
  close.dataset.closes = ".notice";
  close.setAttribute("aria-label", "Close");
  close.textContent = "×";
  notice.append(words, close);
  document.getElementById("notices").append(notice);
};
document.addEventListener("htmx:beforeSwap", (event) => {
  const { xhr } = event.detail;
  if (xhr.status < 400 || xhr.getResponseHeader("X-Console")) return;
  event.detail.shouldSwap = false;
  if (!event.detail.requestConfig?.elt?.hasAttribute?.("data-live")) noticeAdd(`That was not answered (${xhr.status}). Load the page again to see what is true now.`);
});

// Tables whose rows can be picked: one box for all on the page, and the number of those that are.
const picks = (form) => [...form.querySelectorAll("input[type=checkbox][data-pick]")];
const picked = (form) => {
  const boxes = picks(form);
  const count = boxes.filter((box) => box.checked).length;
  form.querySelectorAll("[data-picked]").forEach((place) => { place.textContent = String(count); });
  const all = form.querySelector("input[data-pick-all]");
  if (all) { all.checked = count > 0 && count === boxes.length; all.indeterminate = count > 0 && count < boxes.length; }
};
document.addEventListener("change", (event) => {
  const form = event.target.form;
  if (!form) return;
  if (event.target.matches("[data-pick-all]")) picks(form).forEach((box) => { box.checked = event.target.checked; });
  if (event.target.matches("[data-pick-all], [data-pick]")) picked(form);
  // Filters act as soon as they are chosen; text waits for Enter.
  if (event.target.matches("select[data-submits], input[type=checkbox][data-submits]")) form.requestSubmit();
});
window.addEventListener("pageshow", () => document.querySelectorAll("form:has([data-pick-all])").forEach(picked));

// After Back, fields say the filter that the list is of, not what was typed before it was followed.
window.addEventListener("pageshow", () => document.querySelectorAll("form.filters").forEach((form) => form.reset()));

// Nothing is lost by accident: a form with changes asks before the page is left.
window.addEventListener("beforeunload", (event) => {
  if ([...document.querySelectorAll("form[data-guards]")].some(dirty)) event.preventDefault();
});

// Examples, ids and what is shown once go to the clipboard. Where a browser refuses this (plain http), they are selected.
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
  const heard = document.querySelector("[data-copied]");
  if (heard) heard.textContent = said === "Copied" ? "Copied to the clipboard." : "Selected.";
});

// The exact time of a moment is in UTC. When somebody asks for it, the time of this computer is added.
const HERE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
for (const name of ["pointerover", "focusin"]) {
  document.addEventListener(name, (event) => {
    const time = event.target.closest?.("time[datetime][title]");
    if (!time || time.dataset.here !== undefined) return;
    time.dataset.here = "";
    time.title += `\n${HERE.format(new Date(time.dateTime))}`;
  });
}
