// The page follows the colours that the browser asks for, also when they change.
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();

// Swagger UI gives these controls no name for screen readers, and its scrolling blocks cannot be reached by keyboard.
const names = { ".examples-select-element": "Example", ".body-param__text": "Request body" };
const reference = document.getElementById("reference");
const addAccessibility = () => {
  for (const [control, name] of Object.entries(names)) {
    for (const found of reference.querySelectorAll(`${control}:not([aria-label])`)) found.ariaLabel = name;
  }
  for (const block of reference.querySelectorAll("pre:not([tabindex])")) block.tabIndex = 0;
};
new MutationObserver(addAccessibility).observe(reference, { childList: true, subtree: true });

SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#reference",
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
  deepLinking: true,
  docExpansion: "full",
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  // A theme whose contrast meets WCAG AA.
  syntaxHighlight: { theme: "obsidian" },
  tryItOutEnabled: true,
  // The token is kept in memory only, until the page is closed.
  persistAuthorization: false,
  // Otherwise the page sends the document's address to Swagger's online validator.
  validatorUrl: null,
});
