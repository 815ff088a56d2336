import { readFileSync } from "node:fs";
import { type StaticFile, staticFile } from "../http/static-file.ts";

/** The files of the playground, beside those of the account pages. */
export function readPlaygroundAssets(): { style: StaticFile; script: StaticFile } {
  const read = (name: string, type: string) =>
    staticFile(`/playground/${name}`, type, readFileSync(new URL(name, import.meta.url)));
  return {
    style: read("playground.css", "text/css; charset=utf-8"),
    script: read("playground.js", "text/javascript; charset=utf-8"),
  };
}
