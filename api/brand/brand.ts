import { readFileSync } from "node:fs";
import { type StaticFile, staticFile } from "../http/static-file.ts";
import { html, type Html } from "../pages/html.ts";

/** What all pages share: the name, the mark, and the style sheet with colours and basic elements. */

export const productName = "Serpmill";

export interface Brand {
  mark: StaticFile;
  style: StaticFile;
}

/** The style of the header of pages that need no session, for the style sheet of each. */
export const siteStyle = () => readFileSync(new URL("site.css", import.meta.url));

/** Reads the mark and the style sheet, which pages load by their versioned addresses. */
export function readBrand(): Brand {
  const read = (name: string, type: string) =>
    staticFile(`/brand/${name}`, type, readFileSync(new URL(name, import.meta.url)));
  return { mark: read("mark.svg", "image/svg+xml"), style: read("brand.css", "text/css; charset=utf-8") };
}

/** The mark with the name. The mark has no alternative text, because the name is beside it. */
export function brandName({ mark }: Brand): Html {
  return html`<img class="mark" src="${mark.address}" alt="" width="24" height="24"><span>${productName}</span>`;
}
