import { beforeAll, expect, test } from "vitest";
import { readFamilyMember } from "../../../api/tokens/token-family.ts";
import { Operator } from "../../harness/processes/operator.ts";
import type { Service } from "../../harness/processes/service.ts";
import { usualService } from "../../harness/processes/usual-stack.ts";
import { signIn } from "../../harness/clients/page-visitor.ts";
import { filled, issue, secretOf } from "./token-forms.ts";

/** Tokens that a token makes on the account page: their bounds, and their end with it. */

let service: Service;
let operator: Operator;
beforeAll(async () => {
  service = await usualService({ apis: 2 });
  operator = new Operator(service);
});

/** A session of a token that expires in 10 days and may spend $5 a day. */
async function boundedSession() {
  const organization = await service.organization();
  const bounded = await issue(service, organization.organizationId, { scopes: ["billing"], expiresInDays: 10 });
  await operator.run("limit", "token", bounded.tokenId, "--day", "5000");
  return { organization, bounded, visitor: await signIn(service, { ...organization, token: bounded.token }) };
}

test("a token that a token makes expires no later, and neither it nor its own maker gets a higher limit", async () => {
  const { organization, bounded, visitor } = await boundedSession();
  const create = (fields: Record<string, string>) =>
    visitor.post("/billing/tokens/create", filled(organization, { expires: "", day: "5", ...fields }));
  const { status, text } = await create({ expires: "30", day: "", month: "9" });
  const problems = [
    /id="expires-problem">Expected a time until /,
    /id="day-problem">Expected at most 5.00, the limit of/,
  ];
  expect([status, ...problems.map((one) => one.test(text))]).toEqual([400, true, true]);
  const form = filled(organization, { expires: "", day: "4", scope: "billing" });
  expect((await visitor.post("/billing/tokens/create", form)).status).toBe(200);
  const ofParent = { parentId: bounded.tokenId, expiresAt: bounded.expiresAt };
  expect(await readFamilyMember(service.database, form.id)).toMatchObject(ofParent);
  const limit = (token: string, day: string) =>
    visitor.post("/billing/tokens/limits", { organization: organization.organizationId, token, day, month: "" });
  for (const id of [form.id, bounded.tokenId])
    for (const day of ["5.001", ""]) expect((await limit(id, day)).text).toContain("Expected at most 5.00");
  expect((await limit(form.id, "5")).status).toBe(303);
  expect((await limit(bounded.tokenId, "2")).status).toBe(303);
  expect(await operator.run("limit", "token", form.id)).toMatchObject({ dayLimitMils: 2_000 });
  const refused = { exitCode: 1, stderr: expect.stringContaining("--day: expected at most 2000 mils") };
  expect(await operator.try("limit", "token", form.id, "--day", "2001")).toMatchObject(refused);
});

test("a person who revokes a token sees the valid ones that it made, and may revoke them with it", async () => {
  const { organization, bounded, visitor } = await boundedSession();
  const child = filled(organization, { expires: "", day: "5", scope: "billing", name: "child" });
  const childToken = secretOf((await visitor.post("/billing/tokens/create", child)).text);
  const grandchild = filled(organization, { expires: "", day: "5", name: "grandchild" });
  const childVisitor = await signIn(service, { ...organization, token: childToken });
  const grandchildToken = secretOf((await childVisitor.post("/billing/tokens/create", grandchild)).text);
  expect(await operator.run("token", "revoke", bounded.tokenId)).toMatchObject({
    children: [
      { tokenId: child.id, parentId: bounded.tokenId, revoked: false },
      { tokenId: grandchild.id, parentId: child.id, revoked: false },
    ],
  });
  const owner = await signIn(service, organization);
  const link = `<a href="/billing/tokens/${grandchild.id}">grandchild</a>`;
  expect((await owner.get(`/billing/tokens/${child.id}`)).text).toContain(link);
  const form = { organization: organization.organizationId, token: child.id, children: "revoke" };
  expect((await owner.post("/billing/tokens/revoke", form)).status).toBe(303);
  await expect.poll(async () => (await service.search(grandchildToken, { keyword: "tea" })).status).toBe(401);
  expect(await operator.run("token", "revoke", bounded.tokenId, "--children")).toMatchObject({ children: [] });
});
