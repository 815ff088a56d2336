// The pages work without this script. It updates an open page, answers forms and filters in place, and makes charts usable by
// keyboard.

const retryMs = 30_000;
const copiedMs = 2_000;
const newSections = new Map();
// Opened details and the scroll position of wide tables survive the replacement of their section.
const keptParts = "details, .scroll";
// These forms lead to Stripe's page, and the playground has a script of its own.
const formsThatLeave = /^\/(billing\/topup|billing\/auto-topup\/card|playground\/.*)$/;
const entries = 'form[method="post"] :is(input:not([type="hidden"], [type="password"]), select)';
const searchField = 'input[type="search"], #search [name="keyword"]';
let source;
// The load of a page that is under way.
let loading;
let reloading;
let shownAddress = location.pathname + location.search;

useLink();
addEventListener("hashchange", useLink);
follow();
document.addEventListener("focusout", () => setTimeout(replaceSections));
document.addEventListener("selectionchange", () => setTimeout(replaceSections));
document.addEventListener("keydown", moveInChart);
document.addEventListener("keydown", focusSearch);
document.addEventListener("submit", sendInPlace);
document.addEventListener("click", openInPlace);
addEventListener("popstate", () => {
  // Also an anchor of this page is such a move.
  if (location.pathname + location.search === shownAddress) return;
  if (loading) location.reload();
  else void loadPage(location.href, {}, (page) => page.querySelector("h1"));
});
offerCopies(document);
// The back button restores the old page, although its session may have ended.
addEventListener("pageshow", ({ persisted }) => persisted && location.reload());

/** Signs in with the one-time code in the fragment of a link. The code leaves the address first. */
function useLink() {
  const [, code] = /^#sign-in=([\w-]+)$/.exec(location.hash) ?? [];
  if (code === undefined) return;
  history.replaceState(undefined, "", location.pathname + location.search);
  const form = document.querySelector("form.sign-in");
  form?.append(Object.assign(document.createElement("input"), { type: "hidden", name: "code", value: code }));
  form?.submit();
}

function follow() {
  const address = document.querySelector("[data-live]")?.dataset.live;
  if (!address) return;
  source = new EventSource(address);
  source.addEventListener("open", () => showStatus("Live"));
  source.addEventListener("part", ({ data }) => {
    const { id, html } = JSON.parse(data);
    newSections.set(id, html);
    replaceSections();
  });
  source.addEventListener("over", () => location.replace("/billing"));
  source.addEventListener("error", ({ target }) => {
    showStatus("Updates paused");
    // The browser reconnects a broken stream, but not a refused one.
    if (target.readyState === EventSource.CLOSED) setTimeout(() => target === source && follow(), retryMs);
  });
}

/** `/` focuses the search of the page. */
function focusSearch(event) {
  const { key, target, altKey, ctrlKey, metaKey } = event;
  if (key !== "/" || altKey || ctrlKey || metaKey || target.closest?.("input, select, textarea")) return;
  const field = document.querySelector(searchField);
  if (!field) return;
  event.preventDefault();
  field.focus();
  field.select();
}

/** Answers a form of the account in place. The focus goes to what was wrong, what has changed, or the title of another page. */
function sendInPlace(event) {
  const { target: form, submitter } = event;
  const action = new URL(form.action);
  if (!form.closest("#content") || formsThatLeave.test(action.pathname)) return;
  event.preventDefault();
  const fields = new URLSearchParams(new FormData(form, submitter));
  if (form.method === "post") {
    void loadPage(form.action, { method: "POST", body: fields }, changed);
    return;
  }
  action.search = fields;
  const { name } = document.activeElement;
  void loadPage(action.href, {}, (page) => page.querySelector(`[name="${CSS.escape(name ?? "")}"]`) ?? page.querySelector("h1"));
}

const changed = (page) =>
  ["[aria-invalid], .problem", '[role="alert"]', 'main [role="status"]:not(#live)', "h1"]
    .map((kind) => page.querySelector(kind))
    .find((element) => element);

/** Opens a filter or another page of a list in place, and keeps the focus on it. */
function openInPlace(event) {
  const link = event.target.closest?.("#content :is(.switch, .pager, .find) a");
  if (!link || event.button !== 0 || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const { textContent: label } = link;
  const isSame = (other) => other.textContent === label;
  void loadPage(link.href, {}, (page) => [...page.querySelectorAll(".switch a, .pager a, .find a")].find(isSame) ?? page.querySelector("h1"));
}

/** Puts the page of a response in the place of this one. @param focused finds what gets the focus. */
async function loadPage(address, request, focused) {
  // A form that is on its way is not sent again, and a page that is on its way gives way to the next one.
  if (loading?.isForm) return;
  loading?.abort();
  clearTimeout(reloading);
  const own = Object.assign(new AbortController(), { isForm: request.method === "POST" });
  loading = own;
  document.querySelector("main").ariaBusy = "true";
  try {
    const response = await fetch(address, { ...request, signal: own.signal });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    if (own.isForm && !response.ok && page.querySelector("main.narrow")) return alertPerson(refusalIn(page, response.status));
    keepEntries(page, address);
    showPage(page, response, request.method !== "POST" || response.redirected ? response.url + new URL(address).hash : undefined);
    const focus = focused(document);
    if (focus && !focus.matches("a, input, select, button")) focus.tabIndex = -1;
    focus?.focus();
  } catch {
    if (own.signal.aborted) return;
    // Whether the change was made is unknown, so it is not sent again.
    if (own.isForm) alertPerson("The service did not answer. Reload the page to see whether the change was made.");
    else location.assign(address);
  } finally {
    if (loading === own) {
      loading = undefined;
      document.querySelector("main").ariaBusy = null;
    }
  }
}

/** Keeps what a person entered in the other forms of this page, if the new page has them too. @param sent the address of the answered form. */
function keepEntries(page, sent) {
  for (const field of document.querySelectorAll(entries)) {
    const { form, name, type, value, checked } = field;
    if (form.action === sent || isUntouched(field)) continue;
    const { elements = [] } = [...page.forms].find(({ action }) => action === form.action) ?? {};
    const isSame = (other) => other.name === name && (!/^(checkbox|radio)$/.test(type) || other.value === value);
    Object.assign([...elements].find(isSame) ?? {}, { value, checked });
  }
}

const isUntouched = ({ value, defaultValue, checked, defaultChecked, selectedOptions: [chosen] = [] }) =>
  chosen ? chosen.defaultSelected : value === defaultValue && checked === defaultChecked;

/** What the page of an error says. It does not replace the page that has what a person typed. */
function refusalIn(page, status) {
  if (status === 401) return "You are signed out. Sign in in another tab, then send this again.";
  const [title, text] = [...page.querySelectorAll("h1, h1 + p")].map(({ textContent }) => textContent);
  return `${title}. ${text} What you entered is still here.`;
}

/** Says why a form has changed nothing on this page, in place of what the last form got. */
function alertPerson(text) {
  document.getElementById("refusal")?.remove();
  const problem = document.createElement("p");
  Object.assign(problem, { id: "refusal", className: "notice warning", role: "alert", tabIndex: -1, textContent: text });
  document.querySelector("main .head").after(problem);
  problem.focus();
}

/** @param address of the page; undefined if the form has no page of its own, so that the address stays. */
function showPage(page, response, address) {
  const [old, made] = [document, page].map((from) => from.querySelector(".frame") ?? from.querySelector("main"));
  if (!made) throw new Error("The answer is no page of the account.");
  offerCopies(made);
  source?.close();
  newSections.clear();
  old.replaceWith(made);
  document.title = page.title;
  if (address !== undefined && address !== location.href) {
    const isSamePage = response.redirected && new URL(address).pathname === location.pathname;
    history[isSamePage ? "replaceState" : "pushState"]({}, "", address);
  }
  shownAddress = location.pathname + location.search;
  follow();
  const [, seconds, target] = /^([1-9]\d*)(?:; url=(.+))?$/.exec(response.headers.get("Refresh")) ?? [];
  if (seconds) reloading = setTimeout(() => location.replace(target ?? response.url), seconds * 1_000);
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
      const { href, textContent } = document.getElementById(button.dataset.copy);
      await navigator.clipboard.writeText(href ?? textContent);
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
  // The browser has a use of its own for these, as Alt and an arrow to go back.
  if (!day || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
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
