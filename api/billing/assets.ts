import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Request, Response } from "express";

/** The page's own files. Their addresses change with their content, so browsers may keep them for good. */

interface Asset {
  path: string;
  answer: (request: Request, response: Response) => void;
}

export interface Assets {
  style: Asset;
  script: Asset;
  icon: Asset;
}

const hashLength = 12;

export function readAssets(): Assets {
  return {
    style: readAsset("billing.css", "text/css; charset=utf-8"),
    script: readAsset("billing.js", "text/javascript; charset=utf-8"),
    icon: readAsset("icon.svg", "image/svg+xml"),
  };
}

function readAsset(file: string, type: string): Asset {
  const bytes = readFileSync(new URL(`assets/${file}`, import.meta.url));
  const hash = createHash("sha256").update(bytes).digest("hex").slice(0, hashLength);
  const answer = (_request: Request, response: Response) => {
    response
      .writeHead(200, {
        "Content-Type": type,
        "Content-Length": bytes.length,
        "Cache-Control": "public, max-age=31536000, immutable",
        "X-Content-Type-Options": "nosniff",
        "Cross-Origin-Resource-Policy": "same-origin",
      })
      .end(bytes);
  };
  return { path: `/billing/${file.replace(".", `.${hash}.`)}`, answer };
}
