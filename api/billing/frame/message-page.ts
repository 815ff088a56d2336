import type { Brand } from "../../brand/brand.ts";
import { html, type Html } from "../../pages/html.ts";
import { narrowPage } from "./account-frame.ts";

/** A page with one message and a link to the account. */
export function messagePage(brand: Brand, message: { title: string; text: string; requestId: string }): Html {
  const { title, text, requestId } = message;
  return narrowPage(
    brand,
    html`<h1>${title}</h1>
<p>${text}</p>
<p><a class="button" href="/billing">Go to your account</a></p>
<p class="aside">Request <code>${requestId}</code></p>`,
  );
}
