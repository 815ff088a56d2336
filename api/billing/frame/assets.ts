import { readFileSync } from "node:fs";
import { type StaticFile, staticFile } from "../../http/static-file.ts";

/** The files of the account pages, beside those of the brand. */
export interface Assets {
  style: StaticFile;
  script: StaticFile;
}

export function readAssets(): Assets {
  return {
    style: readAsset("account.css", "text/css; charset=utf-8"),
    script: readAsset("account.js", "text/javascript; charset=utf-8"),
  };
}

function readAsset(name: string, type: string): StaticFile {
  return staticFile(`/billing/${name}`, type, readFileSync(new URL(name, import.meta.url)));
}
