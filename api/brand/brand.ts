import { readFileSync } from "node:fs";
import { type StaticFile, staticFile } from "../http/static-file.ts";
import { html, type Html } from "../pages/html.ts";

/** What all pages share: the name, the mark, the typeface, and the style sheet with colours and basic elements. */

const productName = "Serpmill";

export interface Brand {
  mark: StaticFile;
  font: StaticFile;
  style: StaticFile;
}

const fontFile = new URL(import.meta.resolve("@fontsource-variable/figtree/files/figtree-latin-wght-normal.woff2"));

/** The style of the header of pages that need no session, for the style sheet of each. */
export const siteStyle = () => readFileSync(new URL("site.css", import.meta.url));

/** Reads the files of all pages, which load them by their versioned addresses. */
export function readBrand(): Brand {
  const read = (name: string) => readFileSync(new URL(name, import.meta.url));
  const font = staticFile("/brand/figtree.woff2", "font/woff2", readFileSync(fontFile));
  const style = read("brand.css").toString().replace(font.path, font.address);
  return {
    mark: staticFile("/brand/mark.svg", "image/svg+xml", read("mark.svg")),
    font,
    style: staticFile("/brand/brand.css", "text/css; charset=utf-8", Buffer.from(style)),
  };
}

/** The links of pages that need no session. @param current the path of the page, if one of them leads to it. */
export function siteLinks(brand: Brand, current?: "/docs"): Html {
  return html`<nav class="site" aria-label="Site">
<a class="brand" href="/">${brandName(brand)}</a>
<a href="/docs"${current && html` aria-current="page"`}>Reference</a>
<a href="/playground">Playground</a>
<a href="/#agents">Agents</a>
<a href="/billing">Account</a>
</nav>`;
}

/** The mark with the name. The mark has no alternative text, because the name is beside it. */
export function brandName({ mark }: Brand): Html {
  return html`<img class="mark" src="${mark.address}" alt="" width="24" height="24"><span>${productName}</span>`;
}
