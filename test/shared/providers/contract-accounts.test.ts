import { describe, expect, test } from "vitest";
import { providerNames } from "../../../shared/config.ts";
import type { Account, Failure } from "../../../shared/providers/provider.ts";
import { openProvider } from "../../../shared/providers/registry.ts";
import { engineConfig } from "../../harness/fixtures/queries.ts";
import { contractCases, type ContractCase } from "./contract-cases.ts";
import { foreignBodies, pathsOf, harmfulText, withValueAt, unexpectedValues } from "./hostile-answers.ts";

/** What holds for every provider that has an account of ours. */

const accounts = providerNames.flatMap((name) => {
  const entry: ContractCase = contractCases[name];
  const { account } = openProvider(name, engineConfig(entry.settings));
  return account === undefined || entry.account === undefined ? [] : [{ name, entry, account, told: entry.account }];
});
const figure = /^-?\d{1,3}(,\d{3})*(\.\d\d)? (credits|searches left|USD)$/;

test("there are providers with an account", () => {
  expect(accounts.map(({ name }) => name)).toEqual(["serpapi", "serper", "dataforseo"]);
});

describe.each(accounts)("the account at $name", ({ entry, account, told }) => {
  const read = (body: unknown, status = 200): Account | Failure =>
    account.read({ status, headers: {}, body: typeof body === "string" ? body : JSON.stringify(body) });

  test("it is asked where the operator said, for nothing but itself, with the secret in its usual place", () => {
    const { request } = account;
    const base = Object.entries(entry.settings).find(([setting]) => setting.endsWith("_BASE_URL"))?.[1] ?? "none";
    expect(request.url.split("?")[0]).toBe(`${base}${told.path}`);
    expect(request).toMatchObject({ method: "GET", body: "" });
    const secret = entry.secret?.text ?? "none";
    const places = (["url", "headers"] as const).filter((place) => JSON.stringify(request[place]).includes(secret));
    expect(places).toEqual([entry.secret?.in]);
  });

  test("what is left is told in its own unit, and whether that is nothing", () => {
    expect(read(told.answer)).toEqual({ balance: told.balance, isSpent: false });
    const spent = read(told.spent);
    expect(spent).toEqual({ balance: expect.stringMatching(figure), isSpent: true });
  });

  test.each(entry.failures)("its %i with %j is %s here, too", (status, body, kind) => {
    expect(read(body, status)).toMatchObject({ failure: kind });
  });

  test("neither another status, nor a body of somebody else, nor one that breaks off is an account", () => {
    for (const status of [201, 204, 302, 400, 401, 402, 403, 404, 408, 429, 500, 502, 503]) {
      expect(read(told.answer, status)).toHaveProperty("failure");
    }
    for (const body of [...foreignBodies, entry.page, entry.empty]) expect(read(body)).toHaveProperty("failure");
    const whole = JSON.stringify(told.answer);
    for (let length = 0; length < whole.length; length += 1) {
      expect(read(whole.slice(0, length))).toHaveProperty("failure");
    }
  });

  test("whatever stands in the answer, nothing but a figure and its unit comes out", () => {
    const odd = pathsOf(told.answer).flatMap((path) =>
      [...unexpectedValues, harmfulText, "12", true, 1e21].flatMap((value) => {
        const outcome = read(withValueAt(told.answer, path, value));
        return "failure" in outcome || figure.test(outcome.balance) ? [] : [`${path.join(".")} = ${outcome.balance}`];
      }),
    );
    expect(odd).toEqual([]);
  });
});
