import type { PageFiles } from "./page-files.ts";
import { html, type Html } from "./html.ts";

/** A whole HTML document around a page's body. */
export function htmlDocument({ icon, styles, scripts }: PageFiles, title: string, body: Html): string {
  return `<!doctype html>\n${html`<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${title} · Serpmill</title>
<link rel="icon" href="${icon.address}" type="image/svg+xml">
${styles.map(
  ({ address }) => html`<link rel="stylesheet" href="${address}">
`,
)}${scripts.map(
  ({ address }) => html`<script src="${address}" defer></script>
`,
)}</head>
<body>
${body}
</body>
</html>
`.toString()}`;
}
