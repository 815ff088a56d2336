import type { Assets } from "../assets.ts";
import { html, type Html } from "./html.ts";

/** A whole HTML document around a page's body. */
export function htmlDocument({ icon, style, script }: Assets, title: string, body: Html): string {
  return `<!doctype html>\n${html`<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${title} · Serpmill</title>
<link rel="icon" href="${icon.address}" type="image/svg+xml">
<link rel="stylesheet" href="${style.address}">
<script src="${script.address}" defer></script>
</head>
<body>
${body}
</body>
</html>
`.toString()}`;
}
