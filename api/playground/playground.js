// The page works without this script. It updates the code, the price and the line of options when the form changes, shows that a
// search runs, and cancels it.
const form = document.getElementById("search");
const tickMs = 100;
// The longest deadline of a search, and its delivery. Until then the browser has the answer or an error of its own.
const waitMsMax = 135_000;

form?.addEventListener("input", () => {
  const typed = new FormData(form);
  const body = { keyword: typed.get("keyword") || form.elements.keyword.dataset.example };
  for (const name of ["location", "language", "targetDomain", "device", "format"]) if (typed.get(name)) body[name] = typed.get(name);
  if (typed.get("depth")) body.depth = Number(typed.get("depth"));
  if (typed.has("types")) body.types = typed.getAll("types");
  const json = JSON.stringify(body, undefined, 2);
  for (const shown of document.querySelectorAll("[data-body]")) {
    const text = shown.dataset.body === "shell" ? json.replaceAll("'", "'\\''") : json;
    shown.replaceChildren(...highlighted(text.replaceAll("\n", `\n${shown.dataset.indent}`)));
  }
  const options = [...form.querySelectorAll(".fields :is(input, select)")].map(
    ({ value, placeholder, selectedOptions }) => selectedOptions?.[0].text ?? (value || placeholder),
  );
  const said = [...options.filter((text) => text !== "any"), typed.getAll("types").map(String).join(", ")].filter(Boolean).join(" · ");
  document.getElementById("options").textContent = said;
  const price = document.getElementById("price");
  const pages = Math.ceil((body.depth ?? 10) / 10);
  const mils = Number(price.dataset.perPage) * pages;
  if (mils > 0) price.textContent = `$${(mils / 1000).toFixed(3)}`;
});

/** The text in parts. Tokens have their class, as in the page from the service. */
function highlighted(code) {
  const parts = [];
  let end = 0;
  for (const { index, 0: token, groups } of code.matchAll(new RegExp(document.getElementById("code").dataset.token, "g"))) {
    const className = Object.keys(groups).find((kind) => groups[kind] !== undefined);
    parts.push(code.slice(end, index), Object.assign(document.createElement("span"), { className, textContent: token }));
    end = index + token.length;
  }
  return [...parts, code.slice(end)];
}

const pending = document.getElementById("pending");
const elapsed = document.getElementById("elapsed");
const cancel = document.getElementById("cancel");
// A search that was sent just now may not have reached the service yet.
const cancelTries = 4;
const cancelPauseMs = 500;
let ticks;
// The fields of the search that runs, or that ran last. A person may edit the form meanwhile.
let sent;

form?.addEventListener("submit", (event) => {
  // The search of this form runs already.
  if (ticks !== undefined) return event.preventDefault();
  sent = new URLSearchParams(new FormData(form));
  // Browsers keep neither the fields of this page nor the page of an answer: the way back leads to the fields in the address.
  const fields = [...sent].filter(([name, value]) => value !== "" && name !== "organization" && name !== "key");
  history.replaceState({}, "", `/playground?${new URLSearchParams(fields)}`);
  const startedMs = performance.now();
  showWaiting(true, "Searching…");
  ticks = setInterval(() => {
    const passedMs = performance.now() - startedMs;
    elapsed.textContent = `${(passedMs / 1000).toFixed(1)} s`;
    if (passedMs > waitMsMax) leave();
  }, tickMs);
});

addEventListener("keydown", ({ key }) => key === "Escape" && ticks !== undefined && leave());

/** Stops waiting. The search runs on under the key of the form. */
function leave(text = "No longer waiting. The search runs on, and is charged once: the same search again shows its answer.") {
  stop();
  clearInterval(ticks);
  ticks = undefined;
  elapsed.textContent = "";
  showWaiting(false, text);
}

function showWaiting(isWaiting, text) {
  // Not `aria-busy`: screen readers stay silent about the status inside of what is busy.
  form.classList.toggle("waiting", isWaiting);
  form.querySelector(".keyword button").ariaDisabled = isWaiting;
  cancel.hidden = !isWaiting;
  pending.textContent = text;
}

cancel?.addEventListener("click", () => void cancelSearch());

async function cancelSearch() {
  leave("Cancelling…");
  form.elements.keyword.focus();
  const { outcome, address } = await askToCancel(sent, cancelTries).catch(() => ({}));
  // Another search of the form may have begun meanwhile.
  if (ticks !== undefined) return;
  if (outcome === "cancelled") return showWaiting(false, "Cancelled. Nothing was charged.");
  if (outcome !== "charged") return leave();
  showWaiting(false, "The search had been charged. ");
  pending.append(Object.assign(document.createElement("a"), { href: address, textContent: "See its answer" }));
}

async function askToCancel(body, triesLeft) {
  const answer = await fetch("/playground/cancel", { method: "POST", body });
  if (!answer.ok) return {};
  const ended = await answer.json();
  if (ended.outcome !== "not_running" || triesLeft <= 1) return ended;
  await new Promise((resolve) => setTimeout(resolve, cancelPauseMs));
  // The same search may run again by now.
  if (ticks !== undefined) return {};
  return askToCancel(body, triesLeft - 1);
}

// What a place or a language may mean, while a person types it. The browser lists the suggestions, for keyboard and mouse.
const typingPauseMs = 120;
for (const field of document.querySelectorAll("[data-suggest]")) {
  let timer;
  const suggest = async () => {
    const typed = field.value;
    const answer = await fetch(`/playground/suggestions/${field.name}?text=${encodeURIComponent(typed)}`).catch(() => undefined);
    if (!answer?.ok || typed !== field.value) return;
    const options = (await answer.json()).map((suggestion) => Object.assign(document.createElement("option"), suggestion));
    field.list.replaceChildren(...options);
  };
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(suggest, typingPauseMs);
  });
}
