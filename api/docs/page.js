// The page follows the colours that the browser asks for, also when they change.
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();

// Swagger UI leaves these without a name for who does not see them, and what scrolls out of reach of the keyboard.
const names = { ".examples-select-element": "Example", ".body-param__text": "Request body" };
const reference = document.getElementById("reference");
const mend = () => {
  for (const [control, name] of Object.entries(names)) {
    for (const found of reference.querySelectorAll(`${control}:not([aria-label])`)) found.ariaLabel = name;
  }
  for (const block of reference.querySelectorAll("pre:not([tabindex])")) block.tabIndex = 0;
};
new MutationObserver(mend).observe(reference, { childList: true, subtree: true });

SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#reference",
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
  deepLinking: true,
  docExpansion: "full",
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  // Of its sets of colours one whose contrast is enough for all.
  syntaxHighlight: { theme: "obsidian" },
  tryItOutEnabled: true,
  // A token lives as long as the page and nowhere else.
  persistAuthorization: false,
  // Swagger's own service would be asked whether the document is valid.
  validatorUrl: null,
});
