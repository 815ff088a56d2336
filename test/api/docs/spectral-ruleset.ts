import owasp from "@stoplight/spectral-owasp-ruleset";
import { oas } from "@stoplight/spectral-rulesets";

/** Every rule of Spectral for OpenAPI and of OWASP's ruleset; what we do otherwise, and why, stands in `exceptions`. */
export const ruleset = {
  extends: [
    [oas, "all"],
    [owasp, "all"],
  ],
};

interface Exception {
  rule: string;
  /** Where in the document: keys, joined by slashes. */
  where: RegExp;
  because: string;
}

const whatWeAnswer = /^components\/(responses|schemas\/(?!SearchRequest|IdempotencyKey))|^paths\/.*\/responses\//;

export const exceptions: Exception[] = [
  {
    rule: "owasp:api4:2023-string-limit",
    where: whatWeAnswer,
    because: "it bounds what a server takes in; how long an engine's texts are is not ours to promise",
  },
  {
    rule: "owasp:api4:2023-string-limit",
    where:
      /SearchRequest\/properties\/(engine|language|targetDomain)$|requestBody\/.*\/(engine|language|targetDomain)$/,
    because: "the body's 16 KiB bound them; the error for a longer one names its value, not its length",
  },
  { rule: "owasp:api4:2023-string-restricted", where: whatWeAnswer, because: "they are texts of people and engines" },
  {
    rule: "owasp:api4:2023-array-limit",
    where: whatWeAnswer,
    because: "a page has as many elements as the engine gives it; only organic results are bounded, by depth",
  },
  {
    rule: "owasp:api4:2023-rate-limit",
    where: /\/responses\/40[012]\//,
    because: "the window is looked at last: what was refused before knows nothing of it",
  },
  {
    rule: "owasp:api8:2023-define-cors-origin",
    where: /\/responses\/|^components\/headers$/,
    because: "a token belongs on a server; no page of another origin has any business with it",
  },
  {
    rule: "owasp:api8:2023-define-error-responses-500",
    where: /^paths\/\/v1\/usage\/get\/responses$/,
    because: "a defect is answered as 503: usage has three errors",
  },
  {
    rule: "owasp:api8:2023-define-error-validation",
    where: /^paths\/\/v1\/usage\/get\/responses$/,
    because: "usage takes nothing that could be invalid",
  },
  {
    rule: "owasp:api9:2023-inventory-access",
    where: /^servers\/0$/,
    because: "an extension that says what the security scheme says already",
  },
  {
    rule: "owasp:api9:2023-inventory-environment",
    where: /^servers\/0\/description$/,
    because: "each service describes itself alone, and only its operator knows which of his it is",
  },
  { rule: "contact-properties", where: /^info\/contact$/, because: "the operator is not known here" },
  {
    rule: "license-url",
    where: /^info\/license$/,
    because: "3.1 has identifiers instead, and allows only one of both",
  },
];
