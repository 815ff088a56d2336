import owasp from "@stoplight/spectral-owasp-ruleset";
import { oas } from "@stoplight/spectral-rulesets";

/** Every rule of Spectral for OpenAPI and of OWASP's ruleset; `exceptions` lists where the document deviates, and why. */
export const ruleset = {
  extends: [
    [oas, "all"],
    [owasp, "all"],
  ],
};

interface Exception {
  rule: string;
  /** The path in the document: its keys, joined by slashes. */
  where: RegExp;
  because: string;
}

const responseSchemas = /^components\/(responses|schemas\/(?!SearchRequest|IdempotencyKey))|^paths\/.*\/responses\//;

export const exceptions: Exception[] = [
  {
    rule: "owasp:api4:2023-string-limit",
    where: responseSchemas,
    because: "the rule limits what a server accepts; the API cannot promise how long an engine's texts are",
  },
  {
    rule: "owasp:api4:2023-string-limit",
    where:
      /SearchRequest\/properties\/(engine|language|targetDomain)$|requestBody\/.*\/(engine|language|targetDomain)$/,
    because: "the body's 16 KiB bound them; the error for a longer one names its value, not its length",
  },
  {
    rule: "owasp:api4:2023-string-restricted",
    where: responseSchemas,
    because: "the texts come from people and engines",
  },
  {
    rule: "owasp:api4:2023-array-limit",
    where: responseSchemas,
    because: "a page has as many elements as the engine gives it; only organic results are bounded, by depth",
  },
  {
    rule: "owasp:api4:2023-rate-limit",
    where: /\/responses\/40[012]\//,
    because: "the rate window is checked last, so earlier refusals do not have its state",
  },
  {
    rule: "owasp:api8:2023-define-cors-origin",
    where: /\/responses\/|^components\/headers$/,
    because: "tokens belong on servers, so pages of other origins get no access",
  },
  {
    rule: "owasp:api8:2023-define-error-responses-500",
    where: /^paths\/\/v1\/usage\/get\/responses$/,
    because: "a defect is answered as 503: usage has three errors",
  },
  {
    rule: "owasp:api8:2023-define-error-validation",
    where: /^paths\/\/v1\/usage\/get\/responses$/,
    because: "usage takes no input that could be invalid",
  },
  {
    rule: "owasp:api9:2023-inventory-access",
    where: /^servers\/0$/,
    because: "the extension would repeat the security scheme",
  },
  {
    rule: "owasp:api9:2023-inventory-environment",
    where: /^servers\/0\/description$/,
    because: "each service describes only itself, and does not know which environment of its operator it is",
  },
  { rule: "contact-properties", where: /^info\/contact$/, because: "the operator is not known here" },
  {
    rule: "license-url",
    where: /^info\/license$/,
    because: "OpenAPI 3.1 allows either an identifier or a URL, and the document has the identifier",
  },
];
