import { readFileSync } from "node:fs";
import { staticFile } from "../http/static-file.ts";
import { html, type Html } from "../pages/html.ts";

/** What all pages share: the name, the mark, the typeface, and the style sheet with colours and basic elements. */

const productName = "Serpmill";

const read = (address: string) => readFileSync(new URL(address, import.meta.url));

/** The style of the header of pages that need no session, for the style sheet of each. */
export const siteStyle = () => read("site.css");

const fontFile = import.meta.resolve("@fontsource-variable/figtree/files/figtree-latin-wght-normal.woff2");
const font = staticFile("/brand/figtree.woff2", "font/woff2", read(fontFile));
const css = read("brand.css").toString().replace(font.path, font.address);

/** The files of all pages, which load them by their versioned addresses. */
export const brand = {
  mark: staticFile("/brand/mark.svg", "image/svg+xml", read("mark.svg")),
  font,
  style: staticFile("/brand/brand.css", "text/css; charset=utf-8", Buffer.from(css)),
};

/** The links of pages that need no session. @param current the path of the page, if one of them leads to it. */
export function siteLinks(current?: "/docs"): Html {
  return html`<nav class="site" aria-label="Site">
<a class="brand" href="/">${brandName}</a>
<a href="/docs"${current && html` aria-current="page"`}>Reference</a>
<a href="/playground">Playground</a>
<a href="/#agents">Agents</a>
<a href="/billing">Account</a>
</nav>`;
}

/** The mark with the name. The mark has no alternative text, because the name is beside it. */
export const brandName = html`<img class="mark" src="${brand.mark.address}" alt="" width="24" height="24"><span>${productName}</span>`;
