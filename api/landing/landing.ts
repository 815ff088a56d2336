import { readFileSync } from "node:fs";
import type { Request, Response } from "express";
import { chargingRule } from "../charging-rule.ts";
import { CallerError } from "../../shared/errors.ts";
import { brand, siteLinks, siteStyle } from "../brand/brand.ts";
import { answerExamples, requestExamples } from "../docs/examples.ts";
import { requestScopeOf } from "../http/request-scope.ts";
import { type StaticFile, staticFile } from "../http/static-file.ts";
import { html, type Html } from "../pages/html.ts";
import { PageSender } from "../pages/page-sender.ts";
import { highlighted, searchCode } from "../search-samples.ts";

/** The page at `/`, with links to the reference, the playground and the account, and the address for agents. */
interface Landing {
  /** @throws {CallerError} `not_found` for a program, which does not accept HTML. */
  page: (request: Request, response: Response) => void;
  files: StaticFile[];
}

export function openLanding(): Landing {
  const bytes = Buffer.concat([siteStyle(), readFileSync(new URL("landing.css", import.meta.url))]);
  const style = staticFile("/landing.css", "text/css; charset=utf-8", bytes);
  const files = { icon: brand.mark, font: brand.font, styles: [brand.style, style], scripts: [] };
  const pages = new PageSender({ files, checkoutOrigin: undefined });
  return {
    files: [style],
    page: (request, response) => {
      // A program that accepts anything gets the JSON of any unknown path.
      if (request.accepts(["json", "html"]) !== "html") throw new CallerError("not_found");
      const body = landingPage(requestScopeOf(response).origin);
      pages.send(request, response, { status: 200, title: "Search results as JSON", body });
    },
  };
}

/** @param address of this service, as the browser requested it. */
export function landingPage(address: string): Html {
  const agent = `claude mcp add --transport http serpmill "${address}/mcp?names=plain" \\
  --header "Authorization: Bearer $SERPMILL_TOKEN"`;
  return html`<header>${siteLinks()}</header>
<main class="landing">
<div class="hero">
<div>
<h1>Google results as JSON. What fails costs nothing.</h1>
<p class="lead">One request returns every element of a results page, in rank order.</p>
<p class="ways"><a class="button primary" href="/playground">Try a search</a><a class="button" href="/docs">Read the reference</a></p>
<p class="aside">${chargingRule}</p>
<p class="aside">You need a token, which you get from the operator of this service.</p>
</div>
${example(address)}
</div>
<ul class="parts">
<li class="card"><h2><a href="/docs">Reference</a></h2><p>Every field and error, with code in curl, JavaScript and Python.</p></li>
<li class="card"><h2><a href="/playground">Playground</a></h2><p>Search from a form: see the price first, then the answer as a page, and the code for it.</p></li>
<li class="card"><h2><a href="/billing">Account</a></h2><p>Credit and how long it lasts, the cost of each search, tokens, limits and statements.</p></li>
</ul>
<section aria-labelledby="agents"><h2 id="agents">Agents</h2>
<p>Models search with the same token over the Model Context Protocol, at <code>${address}/mcp?names=plain</code>. For Claude Code:</p>
<pre tabindex="0" role="region" aria-label="Command that adds the tools to Claude Code">${highlighted(agent)}</pre></section>
</main>`;
}

/** A request and its answer, from the examples of the reference. */
function example(address: string): Html {
  const request = searchCode("curl", address, requestExamples.compact?.value ?? {});
  return html`<div class="card example">
<pre tabindex="0" role="region" aria-label="Request">${highlighted(request)}</pre>
<pre tabindex="0" role="region" aria-label="Answer">${highlighted(JSON.stringify(answerExamples.compact?.value, undefined, 2))}</pre>
</div>`;
}
