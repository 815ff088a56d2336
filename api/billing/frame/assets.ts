import { readFileSync } from "node:fs";
import { type StaticFile, staticFile } from "../../http/static-file.ts";

/** The files of the account pages, beside those of the brand. */
export interface Assets {
  style: StaticFile;
  script: StaticFile;
}

/** In the order of the cascade: a page's own style overrides that of an element, and paper overrides all. */
const styles = [
  "./frame.css",
  "../elements/panels.css",
  "../elements/text.css",
  "../elements/links.css",
  "../elements/tables.css",
  "../elements/forms.css",
  "../overview/credit.css",
  "../overview/chart.css",
  "../overview/first-search.css",
  "../overview/add-credit.css",
  "../searches/history.css",
  "../searches/searches.css",
  "../searches/results.css",
  "../tokens/tokens.css",
  "../settings/settings.css",
  "../payments/payments.css",
  "../sign-in/sign-in.css",
  "../elements/print.css",
];

/** Browsers get all styles as one file: about 5 kB, cached for ever, so the next page of an account asks for none. */
export function readAssets(): Assets {
  return {
    style: staticFile("/billing/account.css", "text/css; charset=utf-8", Buffer.concat(styles.map(read))),
    script: staticFile("/billing/account.js", "text/javascript; charset=utf-8", read("./account.js")),
  };
}

const read = (address: string) => readFileSync(new URL(address, import.meta.url));
