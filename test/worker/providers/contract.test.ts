import { describe, expect, test } from "vitest";
import { ConfigError, providerNames } from "../../../shared/config.ts";
import { element } from "../../harness/assertions/element.ts";
import { result } from "../../../shared/results.ts";
import type { Account, Failure, Page, Provider } from "../../../worker/providers/provider.ts";
import { openProvider } from "../../../worker/providers/registry.ts";
import { googleOver } from "../../harness/processes/google-engine.ts";
import { engineConfig, query } from "../../harness/fixtures/queries.ts";
import { pageIn } from "../../harness/fixtures/read-page.ts";
import { contractCases, type ContractCase } from "./contract-cases.ts";
import { providerFailures } from "./provider-failures.ts";
import { foreignBodies, valueAt, pathsOf, harmfulText, withValueAt, unexpectedValues } from "./hostile-answers.ts";

/** The contract that every provider of the registry fulfils. A new provider adds its case in contract-cases.ts. */

const deadlineMs = 20_000;
const awkward = 'Größer than 50% & +plus #1 "東京" a=b;c\\ 100 €';

const queryKinds = {
  plain: {},
  "a city": { location: "Lyon, France" },
  mobile: { device: "mobile" },
  "depth 30": { depth: 30 },
  "another language": { language: "German" },
  "another country": { location: "Austria" },
  "a regional language": { language: "en-GB", location: "UK" },
  "a rare language": { language: "Cantonese" },
};

describe.each(providerNames)("provider %s", (name) => {
  const entry: ContractCase = contractCases[name];
  const provider = openProvider(name, engineConfig(entry.settings));
  const read = (body: unknown, status = 200) => readBy(provider, body, status);

  test("its name is the one in the registry, and it has a call timeout", () => {
    expect(provider.name).toBe(name);
    expect(provider.callTimeoutMs).toBeGreaterThan(0);
  });

  test("a missing setting stops the start and is named", () => {
    for (const missing of entry.required) {
      const { [missing]: _, ...rest } = entry.settings;
      expect(() => openProvider(name, engineConfig(rest))).toThrow(ConfigError);
      expect(() => openProvider(name, engineConfig(rest))).toThrow(`${missing}: required by the provider ${name}`);
    }
  });

  const { mobile, city, language } = provider.can;
  const allKinds = Object.entries<object>(queryKinds);
  const unsupported = [
    ...(mobile ? [] : ["mobile"]),
    ...(city ? [] : ["a city"]),
    ...(language ? ["a rare language"] : []),
  ];
  const supported = allKinds.filter(([kind]) => !unsupported.includes(kind));

  test.each(supported)("a search with %s returns ranked results", async (_, fields) => {
    const put = query({ ...fields, keyword: awkward });
    const seen: string[] = [];
    const answer = await googleOver(answering(provider, entry.page, seen)).search(put, deadlineMs);
    const results = answer.ok ? answer.results : [];
    expect(results.length).toBeGreaterThanOrEqual(2);
    expect(results.map((found) => result.parse(found))).toEqual(results);
    expect(results.map(({ rank }) => rank)).toEqual(results.map((__, index) => index + 1));
    // Each page is requested once.
    expect(seen).toHaveLength(put.depth > 10 && !entry.isWholeDepthAtOnce ? 3 : 1);
    expect(new Set(seen).size).toBe(seen.length);
  });

  test.each(unsupported)("a search with %s, which it does not support, is refused without a call", async (kind) => {
    const fields = new Map(allKinds).get(kind);
    const seen: string[] = [];
    const answer = await googleOver(answering(provider, entry.page, seen)).search(query({ ...fields }), deadlineMs);
    expect(answer).toMatchObject({ code: "query_rejected", details: { reason: "unsupported" } });
    expect(seen).toEqual([]);
  });

  test("a request depends only on query and page, has the keyword as typed, and goes to the configured host", () => {
    for (const [, fields] of supported) {
      const put = Object.freeze(query({ ...fields, keyword: awkward }));
      const request = provider.request(put, 1);
      provider.request(query({ keyword: "another" }), 2);
      expect(provider.request(put, 1)).toEqual(request);
      expect(entry.keywordOf(request)).toBe(awkward);
      const base = Object.entries(entry.settings).find(([setting]) => setting.endsWith("_BASE_URL"))?.[1];
      expect(request.url.startsWith(base === undefined ? "" : `${base}/`)).toBe(true);
      expect(() => new Headers(request.headers)).not.toThrow();
    }
  });

  test("every supported choice of the caller changes the request", () => {
    const { plain, "a city": lyon, mobile: phone, "another language": german, "another country": austria } = queryKinds;
    const choices = [
      plain,
      german,
      austria,
      ...(mobile ? [phone] : []),
      ...(city ? [lyon, { location: "France" }] : []),
    ];
    const requests = choices.map((fields) => JSON.stringify(provider.request(query(fields), 1)));
    expect(new Set(requests).size).toBe(choices.length);
  });

  test("its secret occurs in one part of the request, and never in the outcome of a search", async () => {
    const request = provider.request(query(), 1);
    const { secret } = entry;
    const partsWithSecret = (["url", "headers", "body"] as const).filter((part) =>
      JSON.stringify(request[part]).includes(secret?.text ?? "secret"),
    );
    expect(partsWithSecret).toEqual(secret === undefined ? [] : [secret.in]);
    const broken: Provider = {
      ...provider,
      transport: (sent) => Promise.reject(new Error(`no way to ${JSON.stringify(sent)}`)),
    };
    const answer = await googleOver(broken).search(query(), deadlineMs);
    expect(answer).toMatchObject({ ok: false, code: "engine_error", details: { reason: "provider_unavailable" } });
    expect(JSON.stringify(answer)).not.toContain(secret?.text ?? "secret");
    expect(JSON.stringify(answer)).not.toContain("garden pump");
  });

  test("it reports the balance of its account, or its searches are free", () => {
    const costs = [read(entry.page), read(entry.empty)].map(({ costMicroUsd = 0 }) => costMicroUsd);
    expect(provider.account !== undefined || Math.max(...costs) === 0).toBe(true);
    expect(entry.account === undefined).toBe(provider.account === undefined);
  });

  test("reading a page twice gives the same elements, in the shape of the contract, with cost and total", () => {
    const page = pageIn(read(entry.page));
    read(entry.empty);
    expect(read(entry.page)).toEqual(page);
    expect(page.elements.length).toBeGreaterThanOrEqual(2);
    expect(page.elements.map((found) => element.parse(found))).toEqual(page.elements);
    expect(page.elements.filter(({ type }) => type === "organic").every(isComplete)).toBe(true);
    expect(
      [page.costMicroUsd, page.totalResultsCount].every((count) => Number.isSafeInteger(count) && count >= 0),
    ).toBe(true);
  });

  test("no results at Google are an empty page, not a failure", () => {
    expect(read(entry.empty)).toMatchObject({ elements: [], hasMore: false });
  });

  describe.runIf(entry.rows)("the rows of a page", () => {
    const { at = "", unreadable = [] } = entry.rows ?? {};
    const withRows = (rows: unknown) => read(withValueAt(entry.page, at.split("."), rows));
    const [row] = [valueAt(entry.page, `${at}.0`.split("."))];

    test.each([...unreadable, "Wells", [[row]]])(
      "that cannot be read are counted, and the others returned: %j",
      (broken) => {
        expect(withRows([broken, row, broken])).toMatchObject({ elements: { length: 1 }, unreadableRows: 2 });
      },
    );

    test("that have nothing in them do not count", () => {
      expect(withRows([row, null, {}, ""])).toMatchObject({ elements: { length: 1 } });
      expect(withRows([row, null, {}, ""])).not.toHaveProperty("unreadableRows");
    });

    test.each([[[null]], [[{}, {}]], [["Wells", 7]], [{ first: row }]])(
      "are no empty page, but unreadable and paid for, if they are %j",
      (rows) => {
        const { costMicroUsd = 0 } = read(entry.page);
        expect(withRows(rows)).toEqual({ failure: "unreadable", ...(costMicroUsd > 0 && { costMicroUsd }) });
      },
    );
  });

  test("a page with too many parts is unreadable, whatever they are", () => {
    const crowded = (parts: number) =>
      read({ ...Object(entry.page), crowd: Array.from({ length: parts }, () => 1_000) });
    expect(crowded(49_000)).toHaveProperty("elements");
    expect(crowded(50_000)).toEqual({ failure: "unreadable" });
  });

  test.each(providerFailures[name])("status %i with %j is the failure %s, not a page", (status, body, kind) => {
    const failure = read(body, status);
    expect(failure).toMatchObject({ failure: kind });
    expect(failure).not.toHaveProperty("elements");
  });

  test("another status or a foreign body is never a page", () => {
    const statuses = [200, 201, 204, 206, 301, 302, 400, 401, 402, 403, 404, 408, 410, 429, 500, 502, 503, 599];
    const pages = statuses.flatMap((status) => foreignBodies.filter((body) => !("failure" in read(body, status))));
    expect(pages).toEqual([]);
    // A provider inside this process has only its own statuses.
    for (const status of provider.transport === undefined ? [201, 206, 302, 403, 404, 500, 503] : [403, 500, 503]) {
      expect(read(entry.page, status)).toHaveProperty("failure");
      expect(read(entry.empty, status)).toHaveProperty("failure");
    }
  });

  test("a truncated answer is never a page", () => {
    const whole = JSON.stringify(entry.page);
    const truncated = Array.from(whole, (_, length) => whole.slice(0, length));
    expect(truncated.filter((body) => !("failure" in read(body)))).toEqual([]);
  });

  test("an unexpected value in any part of a page is a failure, or loses no result uncounted and leaves clean elements", () => {
    const { elements } = pageIn(read(entry.page));
    const wrong = pathsOf(entry.page).flatMap((path) =>
      unexpectedValues.flatMap((value) => {
        const outcome = read(withValueAt(entry.page, path, value));
        if ("failure" in outcome) return [];
        const lost = elements.length - outcome.elements.length - (outcome.unreadableRows ?? 0);
        // Nothing in the place of a row is not a row.
        const isSound = lost <= Number(isNothing(value)) && isClean(outcome);
        return isSound ? [] : [`${path.join(".")} = ${JSON.stringify(value)}`];
      }),
    );
    expect(wrong).toEqual([]);
  });

  test("markup, control characters and scripts in any text of a page are removed", () => {
    const texts = pathsOf(entry.page).filter((path) => typeof valueAt(entry.page, path) === "string");
    const wrong = texts.filter((path) => {
      const outcome = read(withValueAt(entry.page, path, harmfulText));
      return !("failure" in outcome) && !isClean(outcome);
    });
    expect(wrong).toEqual([]);
  });
});

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

/** The provider with a transport that answers every request with this body and records the requests in `seen`. */
function answering(provider: Provider, body: unknown, seen: string[]): Provider {
  return {
    ...provider,
    transport: (request) => {
      seen.push(JSON.stringify(request));
      return Promise.resolve({ status: 200, headers: {}, body: JSON.stringify(body) });
    },
  };
}

function readBy(provider: Provider, body: unknown, status: number): Page | Failure {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return provider.read(Object.freeze({ status, headers: Object.freeze({}), body: text }));
}

function isNothing(value: unknown): boolean {
  return value === null || value === "" || JSON.stringify(value) === "{}";
}

function isComplete({ title, url, domain, description }: Page["elements"][number]): boolean {
  return [title, url, domain, description].every((text) => text !== "") && new URL(url).hostname.endsWith(domain);
}

/** In the shape of the contract and safe to display: plain texts, and only http and https URLs. */
function isClean({ elements }: Page): boolean {
  const urls = elements.flatMap(({ url, siteLinks }) => [url, ...siteLinks.map((link) => link.url)]);
  return (
    elements.every((found) => element.safeParse(found).success) &&
    urls.every((url) => url === "" || /^https?:\/\/\S+$/i.test(url)) &&
    !/<script|<img|\\u0000|[\u00a0\u202e]/i.test(JSON.stringify(elements))
  );
}
