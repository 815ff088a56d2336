import { brandName } from "../../brand/brand.ts";
import { html, type Html } from "../../pages/html.ts";

/** One page of an account, without its frame. */
export interface AccountView {
  /** The entry of the navigation that the page belongs to. */
  path: AccountPath;
  title: string;
  body: Html;
  /** The parent of a page that the navigation does not list. */
  above?: { path: string; label: string };
  /** The address of the page's stream of live updates. */
  live?: string | undefined;
}

/** The organization that the page is shown to. */
interface AccountHolder {
  name: string;
  organizationId: string;
  /** Whether the session opens every page, or only the playground and its own searches. */
  hasAccount: boolean;
}

/** The frame of the account pages: brand, navigation, organization, sign-out and title. */
export function accountFrame(holder: AccountHolder, { path, title, body, above, live }: AccountView): Html {
  return html`<a class="skip" href="#content">Skip to content</a>
<div class="frame">
<header>
<a class="brand" href="${holder.hasAccount ? "/billing" : "/playground"}">${brandName}</a>
${navigation(path, holder)}
<div class="who"><p><strong>${holder.name}</strong><code>${holder.organizationId}</code></p>
<form method="post" action="/billing/sign-out"><button class="plain">Sign out</button></form></div>
</header>
<main id="content"${live !== undefined && html` data-live="${live}"`}>
${above && html`<p class="back"><a href="${above.path}">${above.label}</a></p>`}
<div class="head"><h1>${title}</h1>${live !== undefined && html`<p id="live" class="aside" role="status"></p>`}</div>
${body}
</main>
</div>`;
}

/** A page without the frame: a message or the sign-in form. */
export function narrowPage(body: Html): Html {
  return html`<main class="narrow">
<a class="brand" href="/">${brandName}</a>
${body}
</main>`;
}

/** The account pages, in the order of the navigation. */
export const accountPages = [
  { path: "/billing", label: "Overview" },
  { path: "/billing/searches", label: "Searches" },
  { path: "/playground", label: "Playground" },
  { path: "/billing/tokens", label: "Tokens" },
  { path: "/billing/payments", label: "Payments" },
  { path: "/billing/settings", label: "Settings" },
] as const;

export const otherPages = [{ path: "/docs", label: "Reference" }] as const;

/** The page of an account that a view belongs to. */
type AccountPath = (typeof accountPages)[number]["path"];

/** The pages that a session opens whose token may only search. */
export const searchPages: ReadonlySet<AccountPath> = new Set(["/billing/searches", "/playground"]);

function navigation(current: AccountPath, { hasAccount }: AccountHolder): Html {
  const link = ({ path, label }: { path: string; label: string }) =>
    html`<li><a href="${path}"${path === current && html` aria-current="page"`}>${label}</a></li>`;
  return html`<nav class="account-nav" aria-label="Account">
<ul>${accountPages.filter(({ path }) => hasAccount || searchPages.has(path)).map(link)}</ul>
<ul class="others">${otherPages.map(link)}</ul>
</nav>`;
}

/** The result of a form, on the page that it leads back to. */
export const statusNotice = (message: string | undefined): Html | false =>
  message !== undefined && html`<p class="notice" role="status">${message}</p>`;

/** The hidden field of every account form: the organization that the person saw. `AccountHandlers.form` checks it. */
export const organizationField = (organizationId: string): Html =>
  html`<input type="hidden" name="organization" value="${organizationId}">`;

/** A form that is one button. */
export function buttonForm(path: string, label: string, { organizationId }: { organizationId: string }): Html {
  return html`<form method="post" action="${path}">${organizationField(organizationId)}<button class="plain">${label}</button></form>`;
}

/** A form that removes what cannot be restored: one click shows the consequence, and another one removes it. */
export function removalForm(
  path: string,
  label: string,
  { organizationId, consequence }: { organizationId: string; consequence: string },
): Html {
  return html`<details><summary class="danger">${label}</summary>
<form method="post" action="${path}">${organizationField(organizationId)}
<p>${consequence} This cannot be undone.</p>
<button class="danger">Remove permanently</button></form></details>`;
}
