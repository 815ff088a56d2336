import { readFileSync } from "node:fs";
import type { Request, Response } from "express";
import type { Config } from "../../shared/config.ts";
import { CallerError } from "../../shared/errors.ts";
import { type Brand, brandName, readBrand } from "../brand/brand.ts";
import { publicAddress } from "../http/public-address.ts";
import { type StaticFile, staticFile } from "../http/static-file.ts";
import { html, type Html } from "../pages/html.ts";
import { PageSender } from "../pages/page-sender.ts";

/** The page at `/`, which leads a person to the reference, the account and the address for agents. */
export interface Landing {
  /** @throws {CallerError} `not_found` for a program, which asks for no HTML. */
  page: (request: Request, response: Response) => void;
  files: StaticFile[];
}

export function openLanding({ PUBLIC_URL: publicUrl }: Pick<Config, "PUBLIC_URL">): Landing {
  const brand = readBrand();
  const bytes = readFileSync(new URL("landing.css", import.meta.url));
  const style = staticFile("/landing.css", "text/css; charset=utf-8", bytes);
  const files = { icon: brand.mark, styles: [brand.style, style], scripts: [] };
  const pages = new PageSender({ files, checkoutOrigin: undefined });
  return {
    files: [style],
    page: (request, response) => {
      // A program that accepts anything gets the JSON that every unknown path has.
      if (request.accepts(["json", "html"]) !== "html") throw new CallerError("not_found");
      const body = landingPage(brand, publicAddress(request, publicUrl));
      pages.send(request, response, { status: 200, title: "Search results as JSON", body });
    },
  };
}

function landingPage(brand: Brand, address: string): Html {
  const search = `curl -s ${address}/v1/serp/search -H "Authorization: Bearer $TOKEN" \\
  -H 'Content-Type: application/json' -d '{"keyword":"best coffee beans"}'`;
  const agent = `claude mcp add --transport http serpmill "${address}/mcp?names=plain" \\
  --header "Authorization: Bearer $TOKEN"`;
  return html`<main class="landing">
<p class="brand">${brandName(brand)}</p>
<h1>Ranked search results as JSON, paid for to the mil.</h1>
<nav aria-label="Site"><ul>
<li><a class="card" href="/docs"><strong>Reference</strong><span>Every field and every error, with code to copy and requests to try.</span></a></li>
<li><a class="card" href="/playground"><strong>Playground</strong><span>A search in a form, its answer as a page, and the code for it.</span></a></li>
<li><a class="card" href="/billing"><strong>Account</strong><span>Credit, searches and usage. Sign in with a token.</span></a></li>
<li><a class="card" href="#agents"><strong>Agents</strong><span>The same searches as tools for a model.</span></a></li>
</ul></nav>
<section aria-labelledby="first"><h2 id="first">The first search</h2>
<p>The operator of this service gives you a token.</p>
<pre tabindex="0">${search}</pre></section>
<section aria-labelledby="agents"><h2 id="agents">Agents</h2>
<p>The Model Context Protocol is spoken at <code>${address}/mcp?names=plain</code>, with the same token. For Claude Code:</p>
<pre tabindex="0">${agent}</pre></section>
</main>`;
}
