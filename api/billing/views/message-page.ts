import { html, type Html } from "./html.ts";

/** A page with one message and a link to the billing page. */
export function messagePage({ title, text, requestId }: { title: string; text: string; requestId: string }): Html {
  return html`<main class="narrow">
<p class="brand">Serpmill <span>Billing</span></p>
<h1>${title}</h1>
<p>${text}</p>
<p><a class="button" href="/billing">Go to the billing page</a></p>
<p class="aside">Request <code>${requestId}</code></p>
</main>`;
}
