// The pages work without this script. It updates an open page, and makes charts usable by keyboard.

const retryMs = 30_000;
const copiedMs = 2_000;
const newSections = new Map();
// Opened details and the scroll position of wide tables survive the replacement of their section.
const keptParts = "details, .scroll";

follow();
document.addEventListener("focusout", () => setTimeout(replaceSections));
document.addEventListener("selectionchange", () => setTimeout(replaceSections));
document.addEventListener("keydown", moveInChart);
offerCopies(document);
// The back button restores the old page, although its session may have ended.
addEventListener("pageshow", ({ persisted }) => persisted && location.reload());

function follow() {
  const address = document.querySelector("[data-live]")?.dataset.live;
  if (!address) return;
  const source = new EventSource(address);
  source.addEventListener("open", () => showStatus("Live"));
  source.addEventListener("part", ({ data }) => {
    const { id, html } = JSON.parse(data);
    newSections.set(id, html);
    replaceSections();
  });
  source.addEventListener("over", () => location.replace("/billing"));
  source.addEventListener("error", () => {
    showStatus("Updates paused");
    // The browser reconnects a broken stream, but not a refused one.
    if (source.readyState === EventSource.CLOSED) setTimeout(follow, retryMs);
  });
}

function showStatus(text) {
  const status = document.getElementById("live");
  if (status.textContent !== text) status.textContent = text;
  status.classList.toggle("on", text === "Live");
}

/** Replaces sections with their new versions. A section in use is replaced later. */
function replaceSections() {
  for (const [id, html] of newSections) {
    const old = document.getElementById(id);
    if (!old || isInUse(old)) continue;
    newSections.delete(id);
    if (old.dataset.html === html) continue;
    const made = new DOMParser().parseFromString(html, "text/html").getElementById(id);
    const left = [...old.querySelectorAll(keptParts)].map(({ open, scrollLeft }) => ({ open, scrollLeft }));
    made.dataset.html = html;
    offerCopies(made);
    old.replaceWith(made);
    for (const [index, part] of made.querySelectorAll(keptParts).entries()) Object.assign(part, left[index]);
  }
}

/** Whether a section has the keyboard focus or selected text. */
function isInUse(section) {
  if (section.contains(document.activeElement)) return true;
  const selection = getSelection();
  return !selection.isCollapsed && selection.containsNode(section, true);
}

/** Shows the copy buttons. Without script or https a person copies by hand: one click selects the whole text. */
function offerCopies(part) {
  if (!navigator.clipboard) return;
  for (const button of part.querySelectorAll("[data-copy]")) {
    const name = button.textContent;
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
      button.textContent = "Copied";
      setTimeout(() => {
        button.textContent = name;
      }, copiedMs);
    });
  }
}

/** Arrow keys, Home and End move between the days of a chart. Only one day of each chart is in the tab order. */
function moveInChart(event) {
  const day = event.target.closest?.(".day");
  if (!day) return;
  const days = [...day.parentNode.querySelectorAll(".day")];
  const index = days.indexOf(day);
  const next = { ArrowLeft: index - 1, ArrowRight: index + 1, Home: 0, End: days.length - 1 }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  if (!days[next]) return;
  day.tabIndex = -1;
  days[next].tabIndex = 0;
  days[next].focus();
}
