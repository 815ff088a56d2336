// Everything works without this file. With it, the page follows the account while it is open, and the charts have keys.

const retryMs = 30_000;
const parts = new Map();

follow();
document.addEventListener("focusout", () => setTimeout(replaceParts));
document.addEventListener("keydown", moveInChart);
// What "back" brings up is as old as it looks, and perhaps of a session that is over.
addEventListener("pageshow", ({ persisted }) => persisted && location.reload());

function follow() {
  const address = document.querySelector("[data-live]")?.dataset.live;
  if (!address) return;
  const source = new EventSource(address);
  source.addEventListener("open", () => say("Live"));
  source.addEventListener("part", ({ data }) => {
    const { id, html } = JSON.parse(data);
    parts.set(id, html);
    replaceParts();
  });
  source.addEventListener("over", () => location.replace("/billing"));
  source.addEventListener("error", () => {
    say("Updates paused");
    // A broken stream comes back by itself; one that was refused does not.
    if (source.readyState === EventSource.CLOSED) setTimeout(follow, retryMs);
  });
}

function say(text) {
  const place = document.getElementById("live");
  if (place.textContent !== text) place.textContent = text;
  place.classList.toggle("on", text === "Live");
}

/** Puts new parts in place of the old ones. One that somebody is in with the keyboard waits until they leave it. */
function replaceParts() {
  for (const [id, html] of parts) {
    const old = document.getElementById(id);
    if (old.contains(document.activeElement)) continue;
    parts.delete(id);
    const made = new DOMParser().parseFromString(html, "text/html").getElementById(id);
    const opened = [...old.querySelectorAll("details")].map(({ open }) => open);
    if (old.dataset.html === html) continue;
    made.dataset.html = html;
    old.replaceWith(made);
    for (const [at, details] of made.querySelectorAll("details").entries()) details.open = opened[at] ?? false;
  }
}

/** Arrow keys, Home and End go from day to day; the tabulator stops at one day of each chart. */
function moveInChart(event) {
  const day = event.target.closest?.(".day");
  if (!day) return;
  const days = [...day.parentNode.querySelectorAll(".day")];
  const at = days.indexOf(day);
  const next = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: days.length - 1 }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  if (!days[next]) return;
  day.tabIndex = -1;
  days[next].tabIndex = 0;
  days[next].focus();
}
