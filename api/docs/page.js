const dark = matchMedia("(prefers-color-scheme: dark)");
const reference = document.getElementById("reference");

const configuration = (document) => ({
  content: document,
  // The document has the code of each operation. Generated code has neither a key nor a time-out.
  hiddenClients: true,
  theme: "none",
  forceDarkModeState: dark.matches ? "dark" : "light",
  hideDarkModeToggle: true,
  defaultOpenAllTags: true,
  hideModels: true,
  // The token is kept in memory only, until the page is closed.
  persistAuth: false,
  // Nothing of Scalar's own services: no fonts, no proxy, no telemetry, no assistant.
  withDefaultFonts: false,
  proxyUrl: "",
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  showDeveloperTools: "never",
  hideClientButton: true,
  // Its dialog has fields and buttons without names for a screen reader. The playground is the place to try a search.
  hideTestRequestButton: true,
});

// Scrolling blocks of the renderer cannot be reached by keyboard without this, and its buttons that copy code have no name.
const addAccessibility = () => {
  for (const block of document.querySelectorAll("pre:not([tabindex]), .hljs:not([tabindex])")) block.tabIndex = 0;
  for (const button of document.querySelectorAll(".scalar-code-copy:not([aria-label])")) button.ariaLabel = "Copy";
};
new MutationObserver(addAccessibility).observe(document.body, { childList: true, subtree: true });

// Scalar draws what is above a section after it has gone there, which moves the section. So a link to a section shows the
// page once everything above it is drawn.
const settleMsMax = 3_000;
const stillFramesMin = 3;
const topOf = (part) => part.getBoundingClientRect().top;
const settle = async () => {
  if (!location.hash.startsWith("#tag/")) return;
  reference.className = "settling";
  let [stillFrames, end, height] = [0, Infinity, 0];
  while (stillFrames < stillFramesMin && performance.now() < end) {
    await new Promise(requestAnimationFrame);
    const parts = [...reference.querySelectorAll("[data-placeholder]")];
    if (parts.length > 0 && end === Infinity) end = performance.now() + settleMsMax;
    const isDrawn = parts.every((part) => part.dataset.placeholder === "false" || topOf(part) > 0);
    const { scrollHeight } = document.documentElement;
    stillFrames = scrollY > 0 && isDrawn && scrollHeight === height ? stillFrames + 1 : 0;
    height = scrollHeight;
  }
  reference.className = "";
};

const show = async () => {
  const text = await (await fetch("/openapi.json")).text();
  // The address that the reader came by, in the examples too.
  const openApi = JSON.parse(text.replaceAll("https://HOST", location.origin));
  openApi.servers = [{ url: location.origin }];
  void settle();
  const shown = Scalar.createApiReference(reference, configuration(openApi));
  // The page follows the colours that the browser asks for, also when they change.
  dark.addEventListener("change", () => shown.updateConfiguration(configuration(openApi)));
};
show().catch(() => {
  reference.className = "";
  reference.role = "alert";
  reference.textContent = "The reference did not load. Reload the page.";
});
