const dark = matchMedia("(prefers-color-scheme: dark)");
const reference = document.getElementById("reference");

// The languages of the examples: curl, JavaScript and Python. All others that Scalar knows are hidden.
const hiddenClients = {
  ...Object.fromEntries(
    ["c", "clojure", "csharp", "dart", "fsharp", "go", "http", "java", "kotlin", "objc", "ocaml", "php"]
      .concat(["powershell", "r", "ruby", "rust", "swift"])
      .map((language) => [language, true]),
  ),
  js: ["axios", "jquery", "ofetch", "xhr"],
  node: ["axios", "fetch", "ofetch"],
  python: ["aiohttp", "httpx_async", "httpx_sync"],
  shell: ["httpie", "wget"],
};

const configuration = (document) => ({
  content: document,
  hiddenClients,
  defaultHttpClient: { targetKey: "shell", clientKey: "curl" },
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
});

// Scrolling blocks of the renderer cannot be reached by keyboard without this, and its buttons that copy code have no name.
const addAccessibility = () => {
  for (const block of document.querySelectorAll("pre:not([tabindex]), .hljs:not([tabindex])")) block.tabIndex = 0;
  for (const button of document.querySelectorAll(".scalar-code-copy:not([aria-label])")) button.ariaLabel = "Copy";
};
new MutationObserver(addAccessibility).observe(document.body, { childList: true, subtree: true });

const show = async () => {
  const text = await (await fetch("/openapi.json")).text();
  // The address that the reader came by, in the examples too.
  const openApi = JSON.parse(text.replaceAll("https://HOST", location.origin));
  openApi.servers = [{ url: location.origin, description: "This service." }];
  const shown = Scalar.createApiReference(reference, configuration(openApi));
  // The page follows the colours that the browser asks for, also when they change.
  dark.addEventListener("change", () => shown.updateConfiguration(configuration(openApi)));
};
void show();
