// The page works without this script. It updates the code and the price when the form changes.
const form = document.getElementById("search");

form?.addEventListener("input", () => {
  const typed = new FormData(form);
  const body = { keyword: typed.get("keyword") };
  for (const name of ["location", "language", "targetDomain", "device", "format"]) if (typed.get(name)) body[name] = typed.get(name);
  if (typed.get("depth")) body.depth = Number(typed.get("depth"));
  if (typed.has("types")) body.types = typed.getAll("types");
  const json = JSON.stringify(body, undefined, 2);
  for (const shown of document.querySelectorAll("[data-body]")) {
    const text = shown.dataset.body === "shell" ? json.replaceAll("'", "'\\''") : json;
    shown.textContent = text.replaceAll("\n", `\n${shown.dataset.indent}`);
  }
  const price = document.getElementById("price");
  const pages = Math.ceil((body.depth ?? 10) / 10);
  const mils = Number(price.dataset.perPage) * pages;
  if (mils > 0) price.textContent = `$${(mils / 1000).toFixed(3).replace(/0$/, "")}`;
});
