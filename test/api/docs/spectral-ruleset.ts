import owasp from "@stoplight/spectral-owasp-ruleset";
import { oas } from "@stoplight/spectral-rulesets";

/** Every rule of Spectral for OpenAPI and of OWASP's ruleset; `exceptions` lists where the document deviates, and why. */
export const ruleset = {
  extends: [
    [oas, "all"],
    [owasp, "all"],
  ],
};

const responseSchemas = /^components\/(responses|schemas\/(?!SearchRequest|IdempotencyKey))|^paths\/.*\/responses\//;

/** Each by its rule, and the path in the document: its keys, joined by slashes. */
export const exceptions: [rule: string, where: RegExp][] = [
  // The rule limits what a server accepts; the API cannot promise how long an engine's texts are.
  ["owasp:api4:2023-string-limit", responseSchemas],
  // The body's 16 KiB bound them; the error for a longer one names its value, not its length.
  [
    "owasp:api4:2023-string-limit",
    /SearchRequest\/properties\/(engine|language|targetDomain)$|requestBody\/.*\/(engine|language|targetDomain)$/,
  ],
  // The texts come from people and engines.
  ["owasp:api4:2023-string-restricted", responseSchemas],
  // A page has as many elements as the engine gives it; only organic results are bounded, by depth.
  ["owasp:api4:2023-array-limit", responseSchemas],
  // The rate window is checked last, so earlier refusals do not have its state.
  ["owasp:api4:2023-rate-limit", /\/responses\/40[012]\//],
  // Tokens belong on servers, so pages of other origins get no access.
  ["owasp:api8:2023-define-cors-origin", /\/responses\/|^components\/headers$/],
  // A defect is answered as 503: usage has three errors.
  ["owasp:api8:2023-define-error-responses-500", /^paths\/\/v1\/usage\/get\/responses$/],
  // Usage takes no input that could be invalid.
  ["owasp:api8:2023-define-error-validation", /^paths\/\/v1\/usage\/get\/responses$/],
  // The extension would repeat the security scheme.
  ["owasp:api9:2023-inventory-access", /^servers\/0$/],
  // Each service describes only itself, and does not know which environment of its operator it is.
  ["owasp:api9:2023-inventory-environment", /^servers\/0\/description$/],
  // The operator is not known here.
  ["contact-properties", /^info\/contact$/],
  // OpenAPI 3.1 allows either an identifier or a URL, and the document has the identifier.
  ["license-url", /^info\/license$/],
];
