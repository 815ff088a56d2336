import { readFileSync } from "node:fs";
import { type StaticFile, staticFile } from "../http/static-file.ts";

const styles = ["./playground.css", "./results.css"];

/** The files of the playground, beside those of the account pages. */
export function readPlaygroundAssets(): { style: StaticFile; script: StaticFile } {
  return {
    style: staticFile("/playground/playground.css", "text/css; charset=utf-8", Buffer.concat(styles.map(read))),
    script: staticFile("/playground/playground.js", "text/javascript; charset=utf-8", read("./playground.js")),
  };
}

const read = (address: string) => readFileSync(new URL(address, import.meta.url));
