import { readFileSync } from "node:fs";
import type { Request, Response } from "express";
import { chargingRule } from "../charging-rule.ts";
import type { Config } from "../../shared/config.ts";
import { CallerError } from "../../shared/errors.ts";
import { type Brand, brandName, readBrand, siteStyle } from "../brand/brand.ts";
import { answerExamples, requestExamples } from "../docs/examples.ts";
import { publicAddress } from "../http/public-address.ts";
import { type StaticFile, staticFile } from "../http/static-file.ts";
import { html, type Html } from "../pages/html.ts";
import { PageSender } from "../pages/page-sender.ts";

/** The page at `/`, which leads a person to the reference, the account and the address for agents. */
interface Landing {
  /** @throws {CallerError} `not_found` for a program, which asks for no HTML. */
  page: (request: Request, response: Response) => void;
  files: StaticFile[];
}

export function openLanding({ PUBLIC_URL: publicUrl }: Pick<Config, "PUBLIC_URL">): Landing {
  const brand: Brand = readBrand();
  const bytes = Buffer.concat([siteStyle(), readFileSync(new URL("landing.css", import.meta.url))]);
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

/** The page at `/`. @param address of this service, as the person came by it. */
export function landingPage(brand: Brand, address: string): Html {
  const agent = `claude mcp add --transport http serpmill "${address}/mcp?names=plain" \\
  --header "Authorization: Bearer $TOKEN"`;
  return html`<header><nav class="site" aria-label="Site">
<a class="brand" href="/">${brandName(brand)}</a>
<a href="/docs">Reference</a>
<a href="/playground">Playground</a>
<a href="#agents">Agents</a>
<a href="/billing">Account</a>
</nav></header>
<main class="landing">
<div class="hero">
<div>
<h1>Google results as JSON. What fails costs nothing.</h1>
<p class="lead">One request returns every element of a results page, in the order of its rank.</p>
<p class="ways"><a class="button primary" href="/playground">Try a search</a><a class="button" href="/docs">Read the reference</a></p>
<p class="aside">${chargingRule}</p>
<p class="aside">You need a token. The operator of this service gives you one.</p>
</div>
${example(address)}
</div>
<ul class="parts">
<li class="card"><h2><a href="/docs">Reference</a></h2><p>Every field and every error, with code in curl, JavaScript and Python.</p></li>
<li class="card"><h2><a href="/playground">Playground</a></h2><p>A search in a form: its price before the click, its answer as a page, and the code for it.</p></li>
<li class="card"><h2><a href="/billing">Account</a></h2><p>Credit and when it ends, each search and what it cost, tokens, limits and statements.</p></li>
</ul>
<section aria-labelledby="agents"><h2 id="agents">Agents</h2>
<p>A model searches with the same token, over the Model Context Protocol at <code>${address}/mcp?names=plain</code>. For Claude Code:</p>
<pre tabindex="0" role="region" aria-label="Command that adds the tools to Claude Code">${agent}</pre></section>
</main>`;
}

/** A request and its answer, as the reference has them. */
function example(address: string): Html {
  const body = JSON.stringify(requestExamples.compact?.value);
  const request = `curl -s ${address}/v1/serp/search \\
  -H "Authorization: Bearer $TOKEN" \\
  -H 'Content-Type: application/json' \\
  -d '${body}'`;
  return html`<div class="card example">
<pre tabindex="0" role="region" aria-label="Request">${request}</pre>
<pre tabindex="0" role="region" aria-label="Answer">${JSON.stringify(answerExamples.compact?.value, undefined, 2)}</pre>
</div>`;
}
