import type { StaticFile } from "../http/static-file.ts";

/** The files that a page loads, in this order. */
export interface PageFiles {
  icon: StaticFile;
  styles: readonly StaticFile[];
  scripts: readonly StaticFile[];
}

/** Headers of the files of pages: no other site may load them. */
export const pageFileHeaders = {
  "Cross-Origin-Resource-Policy": "same-origin",
};
