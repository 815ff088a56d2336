import { html, type Html } from "./html.ts";

/** A page that says one thing, and where to go from there. */
export function messagePage({ title, says, requestId }: { title: string; says: string; requestId: string }): Html {
  return html`<main class="narrow">
<p class="brand">Serpmill <span>Billing</span></p>
<h1>${title}</h1>
<p>${says}</p>
<p><a class="button" href="/billing">Go to the billing page</a></p>
<p class="aside">Request <code>${requestId}</code></p>
</main>`;
}
