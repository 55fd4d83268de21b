// Lists: keys, decisions in place, the peek panel; and the notices that offer Undo. Without script all of this is links
// and forms.
"use strict";

const rowLink = (row) => row.querySelector("[data-open]") ?? row.querySelector("a");
const listRows = () => [...document.querySelectorAll("[data-row]")].filter((row) => row.checkVisibility() && rowLink(row));
const rowHere = () => document.activeElement?.closest?.("[data-row]") ?? null;
const rowGo = (row) => {
  if (!row) return;
  rowLink(row)?.focus();
  row.scrollIntoView({ block: "nearest" });
  if (peekOpen()) peekShow(row.querySelector("[data-peek]"));
};

// A live region says only what comes into it later, so a notice that came with the page is put there once more.
const noticesSay = () => {
  const place = document.getElementById("notices");
  if (!place?.firstElementChild) return;
  setTimeout(() => {
    const focused = place.contains(document.activeElement) ? document.activeElement : null;
    place.replaceChildren(...place.childNodes);
    focused?.focus();
  }, 100);
};
document.addEventListener("DOMContentLoaded", noticesSay);

// What is decided about one row changes the list in place, so that the next row is at hand.
let place = null;
document.addEventListener("submit", (event) => {
  const button = event.submitter;
  const within = button?.closest("[data-row], #peek, .notice[data-toast]");
  if (!within || !document.querySelector("[data-list]") || button.formMethod === "get") return;
  event.preventDefault();
  const rows = listRows();
  place = Math.max(0, rows.indexOf(rowHere() ?? within));
  htmx.ajax("POST", button.hasAttribute("formaction") ? button.formAction : event.target.action, {
    target: "#content", select: "#content", swap: "outerHTML show:none", values: Object.fromEntries(new FormData(event.target, button)),
  });
});
document.addEventListener("htmx:afterSettle", (event) => {
  if (place === null || event.detail.target.id !== "content") return;
  const rows = listRows();
  if (peekOpen() && rows.length === 0) peekClose();
  rowGo(rows[Math.min(place, rows.length - 1)]);
  place = null;
  document.dispatchEvent(new Event("console:list"));
  noticesSay();
});

// The peek panel shows what a link leads to beside the list.
const peekPanel = () => document.getElementById("peek");
const peekOpen = () => peekPanel() !== null;
const peekClose = () => peekPanel()?.remove();
const peekShow = (link) => {
  if (!link) return peekClose();
  let panel = peekPanel();
  if (!panel) {
    panel = document.createElement("aside");
    panel.id = "peek";
    panel.setAttribute("aria-label", "Peek");
    panel.setAttribute("aria-live", "polite");
    document.body.append(panel);
  }
  htmx.ajax("GET", link.dataset.peek, { target: "#peek", swap: "innerHTML show:none" });
};
document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-peek]");
  if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    rowLink(link.closest("[data-row]"))?.focus({ preventScroll: true });
    peekShow(link);
  }
  if (event.target.closest("[data-closes='#peek']")) rowGo(rowHere());
});

// Keys: j and k move, x selects, e and the letters of buttons decide, p peeks, z takes back.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) && event.target.type !== "checkbox") return;
  if (document.querySelector("dialog[open]")) return;
  if (event.key === "Escape") return peekClose();
  if (event.key === "z") return document.querySelector(".notice[data-toast] form button")?.click();
  const decides = document.querySelector(`[data-key="${CSS.escape(event.key)}"]:not([data-row] *)`);
  const rows = listRows();
  if (rows.length === 0) return decides?.click();
  const here = rowHere();
  const at = rows.indexOf(here);
  if (event.key === "j") rowGo(rows[Math.min(at + 1, rows.length - 1)]);
  else if (event.key === "k") rowGo(rows[Math.max(at - 1, 0)]);
  else if (!here) return;
  else if (event.key === "x") here.querySelector("[data-pick]")?.click();
  else if (event.key === "p") { if (peekOpen()) peekClose(); else peekShow(here.querySelector("[data-peek]")); }
  else here.querySelector(`[data-key="${CSS.escape(event.key)}"]`)?.click();
});
