import { describe, expect, test } from "vitest";
import { providerNames } from "../../../shared/config.ts";
import type { Account, Failure } from "../../../worker/providers/provider.ts";
import { openProvider } from "../../../worker/providers/registry.ts";
import { engineConfig } from "../../harness/fixtures/queries.ts";
import { contractCases, type ContractCase } from "./contract-cases.ts";
import { providerFailures } from "./provider-failures.ts";
import { foreignBodies, pathsOf, harmfulText, withValueAt, unexpectedValues } from "./hostile-answers.ts";

/** The contract of every provider that has an account. */

const accounts = providerNames.flatMap((name) => {
  const entry: ContractCase = contractCases[name];
  const { account } = openProvider(name, engineConfig(entry.settings));
  return account === undefined || entry.account === undefined
    ? []
    : [{ name, entry, account, expected: entry.account }];
});
const balancePattern = /^-?\d{1,3}(,\d{3})*(\.\d\d)? (credits|searches left|USD)$/;

describe.each(accounts)("the account of $name", ({ name, entry, account, expected: accountCase }) => {
  const read = (body: unknown, status = 200): Account | Failure =>
    account.read({ status, headers: {}, body: typeof body === "string" ? body : JSON.stringify(body) });

  test("its request goes to the configured host, with the secret in the usual part", () => {
    const { request } = account;
    const base = Object.entries(entry.settings).find(([setting]) => setting.endsWith("_BASE_URL"))?.[1] ?? "none";
    expect(request.url.split("?")[0]).toBe(`${base}${accountCase.path}`);
    expect(request.body).toBe("");
    const secret = entry.secret?.text ?? "none";
    const partsWithSecret = (["url", "headers"] as const).filter((part) =>
      JSON.stringify(request[part]).includes(secret),
    );
    expect(partsWithSecret).toEqual([entry.secret?.in]);
  });

  test("the balance is reported in the provider's unit, and whether it is spent", () => {
    expect(read(accountCase.answer)).toEqual({ balance: accountCase.balance, isSpent: false });
    const spent = read(accountCase.spent);
    expect(spent).toEqual({ balance: expect.stringMatching(balancePattern), isSpent: true });
  });

  test.each(providerFailures[name])("status %i with %j is the failure %s here, too", (status, body, kind) => {
    expect(read(body, status)).toMatchObject({ failure: kind });
  });

  test("another status, a foreign body or a truncated answer is never an account", () => {
    for (const status of [201, 204, 302, 400, 401, 402, 403, 404, 408, 429, 500, 502, 503]) {
      expect(read(accountCase.answer, status)).toHaveProperty("failure");
    }
    for (const body of [...foreignBodies, entry.page, entry.empty]) expect(read(body)).toHaveProperty("failure");
    const whole = JSON.stringify(accountCase.answer);
    for (let length = 0; length < whole.length; length += 1) {
      expect(read(whole.slice(0, length))).toHaveProperty("failure");
    }
  });

  test("an unexpected value in any part of the answer is a failure, or leaves a number with its unit", () => {
    const wrong = pathsOf(accountCase.answer).flatMap((path) =>
      [...unexpectedValues, harmfulText, "12", true, 1e21].flatMap((value) => {
        const outcome = read(withValueAt(accountCase.answer, path, value));
        return "failure" in outcome || balancePattern.test(outcome.balance)
          ? []
          : [`${path.join(".")} = ${outcome.balance}`];
      }),
    );
    expect(wrong).toEqual([]);
  });
});
