import { html, type Html } from "./html.ts";

/** A page that leads on to the billing page, for a browser that does not reload by itself. */
export function reloadPage(target: string): Html {
  return html`<main class="narrow"><p><a href="${target}">Continue to the billing page</a></p></main>`;
}
