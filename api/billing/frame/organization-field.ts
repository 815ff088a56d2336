import { html, type Html } from "../../pages/html.ts";

/** The hidden field of each form of an account: the organization that the person saw. `AccountHandlers.form` checks it. */
export const organizationField = (organizationId: string): Html =>
  html`<input type="hidden" name="organization" value="${organizationId}">`;
