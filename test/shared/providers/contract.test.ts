import { describe, expect, test } from "vitest";
import { ConfigError, providerNames } from "../../../shared/config.ts";
import { result } from "../../../shared/results.ts";
import { type Failure, failureKinds, type Page, type Provider } from "../../../shared/providers/provider.ts";
import { openProvider } from "../../../shared/providers/registry.ts";
import { googleOver } from "../../harness/processes/google-engine.ts";
import { engineConfig, query } from "../../harness/fixtures/queries.ts";
import { contractCases, type ContractCase } from "./contract-cases.ts";
import { foreignBodies, valueAt, pathsOf, harmfulText, withValueAt, unexpectedValues } from "./hostile-answers.ts";

/** What holds for every provider of the registry, whatever its format. A new one adds its entry in contract-cases.ts. */

const deadlineMs = 20_000;
const element = result.omit({ rank: true });
const awkward = 'Größer than 50% & +plus #1 "東京" a=b;c\\ 100 €';

const questions = {
  plain: {},
  "a city": { location: "Lyon, France" },
  mobile: { device: "mobile" },
  "depth 30": { depth: 30 },
  "another language": { language: "German" },
  "another country": { location: "Austria" },
  "the language of one country": { language: "en-GB", location: "UK" },
  "a language of few": { language: "Cantonese" },
};

describe.each(providerNames)("provider %s", (name) => {
  const entry: ContractCase = contractCases[name];
  const provider = openProvider(name, engineConfig(entry.settings));
  const read = (body: unknown, status = 200) => readBy(provider, body, status);

  test("it goes by its name in the registry and states its time", () => {
    expect(provider.name).toBe(name);
    expect(provider.callTimeoutMs).toBeGreaterThan(0);
  });

  test("a worker does not start without a setting that it needs, and is told which", () => {
    for (const missing of entry.required) {
      const { [missing]: _, ...rest } = entry.settings;
      expect(() => openProvider(name, engineConfig(rest))).toThrow(ConfigError);
      expect(() => openProvider(name, engineConfig(rest))).toThrow(missing);
    }
  });

  const { mobile, city, language } = provider.can;
  const asked = Object.entries<object>(questions);
  const beyond = [
    ...(mobile ? [] : ["mobile"]),
    ...(city ? [] : ["a city"]),
    ...(language ? ["a language of few"] : []),
  ];
  const within = asked.filter(([question]) => !beyond.includes(question));

  test.each(within)("the question with %s has an answer of ranked results", async (_, fields) => {
    const put = query({ ...fields, keyword: awkward });
    const seen: string[] = [];
    const told = await googleOver(answering(provider, entry.page, seen)).search(put, deadlineMs);
    const results = told.ok ? told.results : [];
    expect(results.length).toBeGreaterThanOrEqual(2);
    expect(results.map((found) => result.parse(found))).toEqual(results);
    expect(results.map(({ rank }) => rank)).toEqual(results.map((__, index) => index + 1));
    // Each page is asked for once.
    expect(seen).toHaveLength(put.depth > 10 && !entry.isWholeDepthAtOnce ? 3 : 1);
    expect(new Set(seen).size).toBe(seen.length);
  });

  test.each(beyond)("the question with %s is passed over, and nobody is asked", async (question) => {
    const fields = new Map(asked).get(question);
    const seen: string[] = [];
    const told = await googleOver(answering(provider, entry.page, seen)).search(query({ ...fields }), deadlineMs);
    expect(told).toMatchObject({ code: "query_rejected", details: { reason: "unsupported" } });
    expect(seen).toEqual([]);
  });

  test("a request is a function of query and page, has the keyword as typed, and goes where the operator said", () => {
    for (const [, fields] of within) {
      const put = Object.freeze(query({ ...fields, keyword: awkward }));
      const request = provider.request(put, 1);
      provider.request(query({ keyword: "another" }), 2);
      expect(provider.request(put, 1)).toEqual(request);
      expect(entry.keywordOf(request)).toBe(awkward);
      const base = Object.entries(entry.settings).find(([setting]) => setting.endsWith("_BASE_URL"))?.[1];
      expect(request.url.startsWith(base === undefined ? "" : `${base}/`)).toBe(true);
      expect(request.method === "POST" || request.body === "").toBe(true);
      expect(() => new Headers(request.headers)).not.toThrow();
    }
  });

  test("whatever a caller may choose changes the request, where it can be honoured", () => {
    const { plain, "a city": lyon, mobile: phone, "another language": german, "another country": austria } = questions;
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

  test("its secret stands in one place of the request, and in nothing that is told of a search", async () => {
    const request = provider.request(query(), 1);
    const { secret } = entry;
    const places = (["url", "headers", "body", "method"] as const).filter((place) =>
      JSON.stringify(request[place]).includes(secret?.text ?? "secret"),
    );
    expect(places).toEqual(secret === undefined ? [] : [secret.in]);
    const broken: Provider = {
      ...provider,
      transport: (sent) => Promise.reject(new Error(`no way to ${JSON.stringify(sent)}`)),
    };
    const answer = await googleOver(broken).search(query(), deadlineMs);
    expect(answer).toMatchObject({ ok: false, code: "engine_error", details: { reason: "provider_unavailable" } });
    expect(JSON.stringify(answer)).not.toContain(secret?.text ?? "secret");
    expect(JSON.stringify(answer)).not.toContain("garden pump");
  });

  test("it tells what our account there has left, or its searches cost nothing", () => {
    const costs = [read(entry.page), read(entry.empty)].map(({ costMicroUsd = 0 }) => costMicroUsd);
    expect(provider.account !== undefined || Math.max(...costs) === 0).toBe(true);
    // How it tells is held to what stands in contract-accounts.test.ts.
    expect(entry.account === undefined).toBe(provider.account === undefined);
  });

  test("a page is read as often as one likes, in the shape of the contract, with cost and total", () => {
    const page = pageOf(read(entry.page));
    read(entry.empty);
    expect(read(entry.page)).toEqual(page);
    expect(page.elements.length).toBeGreaterThanOrEqual(2);
    expect(page.elements.map((found) => element.parse(found))).toEqual(page.elements);
    expect(page.elements.filter(({ type }) => type === "organic").every(isComplete)).toBe(true);
    expect(
      [page.costMicroUsd, page.totalResultsCount].every((count) => Number.isSafeInteger(count) && count >= 0),
    ).toBe(true);
  });

  test("a page that Google has nothing on is an empty page and no failure", () => {
    expect(read(entry.empty)).toMatchObject({ elements: [], hasMore: false });
  });

  test("a page with more parts than any page has cannot be read, whatever they are", () => {
    const crowded = (parts: number) =>
      read({ ...Object(entry.page), crowd: Array.from({ length: parts }, () => 1_000) });
    expect(crowded(49_000)).toHaveProperty("elements");
    expect(crowded(50_000)).toEqual({ failure: "unreadable" });
  });

  test.each(entry.failures)("its %i with %j is %s, and no page", (status, body, kind) => {
    const failure = read(body, status);
    expect(failure).toMatchObject({ failure: kind });
    expect(failure).not.toHaveProperty("elements");
    expect(failureKinds).toHaveProperty(kind);
  });

  test("neither another status nor a body of somebody else is ever a page", () => {
    for (const status of [200, 201, 204, 206, 301, 302, 400, 401, 402, 403, 404, 408, 410, 429, 500, 502, 503, 599]) {
      for (const body of foreignBodies) expect(Object.keys(read(body, status))).toContain("failure");
    }
    // What lives in this process knows no statuses but its own.
    for (const status of provider.transport === undefined ? [201, 206, 302, 403, 404, 500, 503] : [403, 500, 503]) {
      expect(read(entry.page, status)).toHaveProperty("failure");
      expect(read(entry.empty, status)).toHaveProperty("failure");
    }
  });

  test("an answer that breaks off is never a page", () => {
    const whole = JSON.stringify(entry.page);
    for (let length = 0; length < whole.length; length += 1) {
      expect(read(whole.slice(0, length))).toHaveProperty("failure");
    }
  });

  test("whichever part of a page is something else, no result gets lost without a failure, and nothing breaks", () => {
    const { elements } = pageOf(read(entry.page));
    const odd = pathsOf(entry.page).flatMap((path) =>
      unexpectedValues.flatMap((value) => {
        const outcome = read(withValueAt(entry.page, path, value));
        const isSound = "failure" in outcome || (outcome.elements.length >= elements.length && isClean(outcome));
        return isSound ? [] : [`${path.join(".")} = ${JSON.stringify(value)}`];
      }),
    );
    expect(odd).toEqual([]);
  });

  test("whatever is written into a page, no markup, control character or script comes out", () => {
    const texts = pathsOf(entry.page).filter((path) => typeof valueAt(entry.page, path) === "string");
    const odd = texts.filter((path) => {
      const outcome = read(withValueAt(entry.page, path, harmfulText));
      return !("failure" in outcome) && !isClean(outcome);
    });
    expect(odd).toEqual([]);
  });
});

/** The provider with an answer of the given body to everything; each request is noted as it was sent. */
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

function pageOf(outcome: Page | Failure): Page {
  if ("failure" in outcome) throw new Error(`This page could not be read: ${outcome.failure}.`);
  return outcome;
}

function isComplete({ title, url, domain, description }: Page["elements"][number]): boolean {
  return [title, url, domain, description].every((text) => text !== "") && new URL(url).hostname.endsWith(domain);
}

/** In the shape of the contract, and safe to show: plain texts, addresses of the web. */
function isClean({ elements }: Page): boolean {
  const urls = elements.flatMap(({ url, siteLinks }) => [url, ...siteLinks.map((link) => link.url)]);
  return (
    elements.every((found) => element.safeParse(found).success) &&
    urls.every((url) => url === "" || /^https?:\/\/\S+$/i.test(url)) &&
    !/<script|<img|\\u0000|\u00a0/i.test(JSON.stringify(elements))
  );
}
