import type { Brand } from "../../brand/brand.ts";
import { html, type Html } from "../../pages/html.ts";
import { narrowPage } from "./account-frame.ts";

/** A page that leads on to a page of the account, for a browser that does not reload by itself. */
export function reloadPage(brand: Brand, target: string): Html {
  return narrowPage(brand, html`<p><a href="${target}">Continue to your account</a></p>`);
}
