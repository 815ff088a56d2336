// The page works without this script. With it, the code follows the form.
const form = document.getElementById("search");

form?.addEventListener("input", () => {
  const typed = new FormData(form);
  const body = { keyword: typed.get("keyword") };
  for (const name of ["location", "language", "device", "targetDomain", "format"]) if (typed.get(name)) body[name] = typed.get(name);
  if (typed.get("depth")) body.depth = Number(typed.get("depth"));
  if (typed.has("types")) body.types = typed.getAll("types");
  const json = JSON.stringify(body);
  for (const shown of document.querySelectorAll("[data-body]")) {
    shown.textContent = shown.dataset.body === "shell" ? json.replaceAll("'", "'\\''") : json;
  }
  const price = document.getElementById("price");
  const pages = Math.ceil((body.depth ?? 10) / 10);
  const mils = Number(price.dataset.perPage) * pages;
  if (mils > 0) price.textContent = `$${(mils / 1000).toFixed(3).replace(/0$/, "")}`;
});
