import type { Attack, Finding } from "../attack.ts";
import type { AttackStack } from "../attack-stack.ts";
import { type PageVisitor, signIn } from "../../harness/clients/page-visitor.ts";
import type { Organization } from "../../harness/processes/service.ts";

const usd10 = "10000";

/**
 * A page on a sibling subdomain can plant cookies in the payer's browser, and a longer path makes the browser send them first.
 * The payer must not pay for the attacker's organization.
 */
export const plantedCookies: Attack = {
  name: "planted-cookies",
  tried: "the attacker's session cookie before and after the payer's, and a form without an organization",
  stack: { payments: true, settings: { TRUSTED_PROXIES: "1" } },
  run: async (stack) => {
    const [victim, attacker] = [await stack.service.organization(), await stack.service.organization()];
    const [payer, thief] = [await signInFrom(stack, victim, 1), await signInFrom(stack, attacker, 2)];
    const own = payer.cookie ?? "";
    const planted = thief.cookie ?? "";
    const jars = [`${planted}; ${own}`, `${own}; ${planted}`, `${planted.replace("__Host-", "")}; ${own}`, planted];
    const outcomes: string[] = [];
    for (const jar of jars) {
      payer.cookie = own;
      const form = fieldsOf((await payer.get("/billing")).text);
      payer.cookie = jar;
      const { status } = await payer.post("/billing/topup", { ...form, mils: usd10 });
      outcomes.push(`${status} for ${beneficiary(stack, victim, attacker)}`);
    }
    const bare = await signInFrom(stack, victim, 3);
    const { status } = await bare.post("/billing/topup", { mils: usd10 });
    outcomes.push(`without an organization in the form: ${status}`);
    return [judgePayments(outcomes), judgeCookie(payer)];
  },
};

const signInFrom = ({ service }: AttackStack, organization: Organization, address: number): Promise<PageVisitor> =>
  signIn(service, organization, {
    headers: { "x-forwarded-for": `198.51.100.${address}`, "x-forwarded-proto": "https" },
  });

/** The hidden fields of the form that buys credit. */
function fieldsOf(html: string): Record<string, string> {
  const form = /<form[^>]*action="\/billing\/topup"[\s\S]*?<\/form>/.exec(html)?.[0] ?? "";
  const hidden = form.matchAll(/<input[^>]*type="hidden"[^>]*>/g);
  return Object.fromEntries(
    [...hidden].map(([input]) => [/name="([^"]*)"/.exec(input)?.[1] ?? "", /value="([^"]*)"/.exec(input)?.[1] ?? ""]),
  );
}

/** Whom the newest payment would credit. */
function beneficiary({ stripe }: AttackStack, victim: Organization, attacker: Organization): string {
  const paid = stripe.sessions.pop()?.client_reference_id;
  if (paid === attacker.organizationId) return "the attacker";
  return paid === victim.organizationId ? "the payer" : "none";
}

const judgePayments = (outcomes: readonly string[]): Finding => ({
  promised: "no payment of the payer credits the attacker",
  seen: outcomes.join("; "),
  held: outcomes.every((outcome) => !outcome.includes("the attacker")),
});

const judgeCookie = ({ setCookie = "" }: PageVisitor): Finding => ({
  promised: "over https the cookie is bound to the host, with path /",
  seen: setCookie.replace(/=[\w-]{43}/, "=…"),
  held: /^__Host-[\w-]+=[\w-]{43}; Path=\/; HttpOnly; Secure; SameSite=Strict$/.test(setCookie),
});
