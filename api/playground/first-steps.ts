import { html, type Html } from "../pages/html.ts";
import { formAddress } from "./form-address.ts";

const examples = [
  { label: "best coffee beans", query: { keyword: "best coffee beans" } },
  {
    label: "bakery, in Munich, on a phone",
    query: { keyword: "bakery", location: "Munich, Germany", language: "German", device: "mobile" },
  },
  { label: "only the news on electric cars", query: { keyword: "electric cars", types: ["top_stories"] } },
];

/** What stands where the answer will be, before the first search: searches that fill the form. */
export function firstSteps(): Html {
  return html`<section class="panel shown" aria-labelledby="first-title"><h2 id="first-title">The answer appears here</h2>
<p class="aside">As people see it on a results page, and as JSON. To fill the form:</p>
<ul class="chips">${examples.map(({ label, query }) => html`<li><a href="${formAddress(query)}">${label}</a></li>`)}</ul></section>`;
}
