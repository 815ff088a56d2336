import { recordEvent } from "../../shared/webhooks/webhook-events.ts";
import { newId } from "../../shared/ids.ts";
import { sendEvent } from "../harness/clients/topups.ts";
import { type PageVisitor, signIn } from "../harness/clients/page-visitor.ts";
import { aMonth, backdateLedger, logSearches } from "../harness/fixtures/backdate-ledger.ts";
import { deliveredEvent } from "../harness/fixtures/delivered-event.ts";
import type { Organization, Service } from "../harness/processes/service.ts";
import { eventOf, type StripeStub } from "../harness/stubs/stripe-stub.ts";

/** An organization and a person who is signed in to it. */
export interface Account {
  organizationId: string;
  visitor: PageVisitor;
  /** Its searches and tokens, by what is special about each. */
  requestIds: Record<string, string>;
  tokenIds: Record<string, string>;
}

async function accountOf(service: Service, organization: Organization, api = 0): Promise<Account> {
  const visitor = await signIn(service, organization, { api });
  const { organizationId, tokenId } = organization;
  return { organizationId, visitor, requestIds: {}, tokenIds: { own: tokenId } };
}

/** An organization with credit that has not searched yet. */
export const newAccount = async (service: Service) => accountOf(service, await service.organization());

/** An organization without credit. */
export const emptyAccount = async (service: Service) =>
  accountOf(service, await service.organization({ creditMils: 0 }));

/** An organization with a month of searches, some searches of this minute, and a second token with limits. */
export async function busyAccount(service: Service): Promise<Account> {
  const organization = await service.organization({ creditMils: 0 });
  await backdateLedger(service.databaseUrl, organization.organizationId, aMonth(new Date()));
  await logSearches(service.databaseUrl, organization.organizationId, [0, 1, 8, 10]);
  const search = async (query: object) => {
    const { body } = await service.search(organization.token, query, { key: newId("req") });
    return String(body.requestId ?? body.error.requestId);
  };
  const repeated = { keyword: "coffee beans berlin", location: "Berlin, Germany", device: "mobile" };
  await search(repeated);
  const charged = await search(repeated);
  const failed = await search({ keyword: "sandbox:error" });
  const refused = await search({ keyword: "coffee beans", engine: "bing", depth: 30 });
  await search({ keyword: "best running shoes 2026 for people who run in the rain, on a long road without any shade" });
  const account = await accountOf(service, organization);
  const limited = newId("tok");
  const token = { organization: organization.organizationId, id: limited, name: "crawler of the shop" };
  await account.visitor.post("/billing/tokens/create", {
    ...token,
    scope: "search",
    expires: "90",
    day: "5",
    month: "100",
  });
  await service.until(async () => {
    const logged =
      "select from search_log where request_id = $1 union all select from refused_searches where request_id = $2";
    return (await service.database.query(logged, [failed, refused])).rows.length === 2;
  });
  return { ...account, requestIds: { charged, failed, refused }, tokenIds: { ...account.tokenIds, limited } };
}

/** An organization below its low-balance threshold, with one delivered and one waiting webhook event. */
export async function lowAccount(service: Service): Promise<Account> {
  const organization = await service.organization({ creditMils: 900 });
  const account = await accountOf(service, organization);
  const { organizationId } = organization;
  await account.visitor.post("/billing/settings/low-balance", { organization: organizationId, dollars: "5" });
  await deliveredEvent(service.database, organizationId);
  await recordEvent(service.database, organizationId, { type: "webhook.test", data: {} });
  return account;
}

/** An organization that paid by Stripe. @param api the API with payments. */
export async function payingAccount(service: Service, stripe: StripeStub, api: number): Promise<Account> {
  const organization = await service.organization({ creditMils: 0 });
  const account = await accountOf(service, organization, api);
  await account.visitor.post("/billing/topup", { organization: organization.organizationId, mils: "25000" });
  const paid = { ...stripe.sessions.at(-1), status: "complete", payment_status: "paid" };
  await sendEvent(service, eventOf(paid), { api });
  return account;
}
