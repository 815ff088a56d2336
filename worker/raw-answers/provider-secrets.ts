import { providerSecrets } from "../../shared/config/secret-settings.ts";
import type { EngineConfig } from "../../shared/config.ts";

const removed = "[secret]";

/**
 * Returns a function that replaces every secret of a provider in a text by `[secret]`. Providers repeat the request in
 * their answers, SerpApi with the key in it. The secret is also found as URLs, JSON and HTML encode it, and as the header
 * of Basic authentication.
 */
export function openSecretRemoval(config: EngineConfig): (text: string) => string {
  const secrets = providerSecrets.flatMap((name) => config[name] ?? []);
  const { DATAFORSEO_LOGIN: login, DATAFORSEO_PASSWORD: password } = config;
  if (login !== undefined && password !== undefined) secrets.push(btoa(`${login}:${password}`));
  if (secrets.length === 0) return (text) => text;
  // The longest first: one may be the beginning of another.
  const patterns = secrets.toSorted((one, other) => other.length - one.length).map(encodedForms);
  const pattern = new RegExp(patterns.join("|"), "g");
  return (text) => text.replace(pattern, removed);
}

const namedEntities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&apos;",
};

/** A pattern for a secret whose characters may each be encoded. Secrets are ASCII. */
function encodedForms(secret: string): string {
  return secret.replace(/./g, encodedCharacter);
}

function encodedCharacter(character: string): string {
  const code = character.charCodeAt(0);
  const digits = code.toString(16).padStart(2, "0");
  const literal = `\\x${digits}`;
  const hex = digits.replace(/[a-f]/, (digit) => `[${digit}${digit.toUpperCase()}]`);
  const named = namedEntities[character] ?? literal;
  // A JSON text within a JSON text has several backslashes.
  return `(?:${literal}|\\\\+(?:${literal}|u00${hex}|x${hex})|%${hex}|&#0*${code};|&#[xX]0*${hex};|${named})`;
}
