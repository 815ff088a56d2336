import { readFileSync } from "node:fs";
import { type StaticFile, staticFile } from "../http/static-file.ts";

/** The files of the playground, beside those of the account pages. */
export function readPlaygroundAssets(): { style: StaticFile; script: StaticFile } {
  return {
    style: staticFile("/playground/playground.css", "text/css; charset=utf-8", read("./playground.css")),
    script: staticFile("/playground/playground.js", "text/javascript; charset=utf-8", read("./playground.js")),
  };
}

const read = (address: string) => readFileSync(new URL(address, import.meta.url));
