import { readFileSync } from "node:fs";
import { type StaticFile, staticFile } from "../http/static-file.ts";

/** The files that the billing page loads. */
export interface Assets {
  style: StaticFile;
  script: StaticFile;
  icon: StaticFile;
}

export const assetHeaders = {
  "Cross-Origin-Resource-Policy": "same-origin",
};

export function readAssets(): Assets {
  return {
    style: readAsset("billing.css", "text/css; charset=utf-8"),
    script: readAsset("billing.js", "text/javascript; charset=utf-8"),
    icon: readAsset("icon.svg", "image/svg+xml"),
  };
}

function readAsset(name: string, type: string): StaticFile {
  return staticFile(`/billing/${name}`, type, readFileSync(new URL(`assets/${name}`, import.meta.url)));
}
