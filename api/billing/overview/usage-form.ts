import { html, type Html } from "../../pages/html.ts";
import { type FindableToken, tokenOptions } from "../searches/find-form.ts";
import type { UsageView } from "./usage-view.ts";

/** The form that draws the chart for one token, if there are several. It is outside of the section that changes, so that no choice is lost. */
export function usageForm({ measure, range, tokenId }: UsageView, tokens: readonly FindableToken[]): Html | false {
  if (tokens.length < 2 && tokenId === undefined) return false;
  return html`<form class="of-token" action="/billing#usage">
<input type="hidden" name="measure" value="${measure}"><input type="hidden" name="range" value="${range}">
<label>Usage of <select name="token"><option value="">All tokens</option>${tokenOptions(tokens, tokenId)}</select></label>
<button class="plain">Show</button>
</form>`;
}
