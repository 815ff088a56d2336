import { html, type Html } from "../../pages/html.ts";

/** The pages of an account, in the order in which the frame lists them. */
export const accountPages = [
  { path: "/billing", label: "Overview" },
  { path: "/billing/searches", label: "Searches" },
  { path: "/playground", label: "Playground" },
  { path: "/billing/tokens", label: "Tokens" },
  { path: "/billing/payments", label: "Payments" },
  { path: "/billing/settings", label: "Settings" },
] as const;

/** Pages beside the account. */
const otherPages = [{ path: "/docs", label: "Reference" }] as const;

/** The page of an account that a view belongs to. */
export type AccountPath = (typeof accountPages)[number]["path"];

export function navigation(current: AccountPath): Html {
  const link = ({ path, label }: { path: string; label: string }) =>
    html`<li><a href="${path}"${path === current && html` aria-current="page"`}>${label}</a></li>`;
  return html`<nav class="account-nav" aria-label="Account">
<ul>${accountPages.map(link)}</ul>
<ul class="others">${otherPages.map(link)}</ul>
</nav>`;
}
