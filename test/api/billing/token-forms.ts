import { newId } from "../../../shared/ids.ts";
import { issueToken, type TokenTerms } from "../../../api/tokens/tokens.ts";
import type { Organization, Service } from "../../harness/processes/service.ts";

/** What the tests of the token pages do as an account does it. */

/** What a person fills in; the id is new, as in a page that was just opened. */
export const filled = (organization: Organization, fields: Record<string, string> = {}) => ({
  organization: organization.organizationId,
  id: newId("tok"),
  name: "crawler",
  scope: "search",
  expires: "30",
  day: "",
  month: "",
  ...fields,
});

export async function issue(service: Service, organizationId: string, terms?: TokenTerms) {
  const issued = await issueToken(service.database, organizationId, terms);
  if (!issued) throw new Error("there is no organization");
  return issued;
}

export const secretOf = (text: string) => />(smk_[a-z0-9]{39})</.exec(text)?.[1] ?? "";
