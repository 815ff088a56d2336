import { beforeAll, describe, expect, test } from "vitest";
import { newToken } from "../../../api/tokens/tokens.ts";
import { freePort } from "../../../local/ports.ts";
import { newId } from "../../../shared/ids.ts";
import { everythingInPostgres } from "../../harness/assertions/everything-in-redis.ts";
import { Exposition } from "../../harness/assertions/metrics.ts";
import { PageVisitor, signIn } from "../../harness/clients/page-visitor.ts";
import { sendRaw } from "../../harness/clients/raw-http.ts";
import { Operator } from "../../harness/processes/operator.ts";
import type { Organization } from "../../harness/processes/service.ts";
import { doorHost, usualService } from "../../harness/processes/usual-stack.ts";
import { startHaproxy, withoutHaproxy } from "../../harness/servers/haproxy.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";

/** Tokens in the addresses of doors, for clients that send none. */

const dayMils = 100;

const service = await usualService();
const operator = new Operator(service);

const organizationOfDoor = () => service.organization({ scopes: ["door"], dayMils });

const ask = (token: string, q: string) => service.send(`/searxng/k/${token}/search?q=${q}&format=json`);

test("searches at the door, by its path and by its host, and is charged like any search", async () => {
  const { organizationId, token } = await organizationOfDoor();
  expect(await ask(token, "tea")).toMatchObject({ status: 200, body: { query: "tea" } });
  expect(await service.send(`/searxng/k/${token}/?q=coffee&format=json`)).toMatchObject({ status: 200 });
  const head = `GET /k/${token}/search?q=cocoa&format=json HTTP/1.1\r\nHost: ${doorHost}\r\nConnection: close\r\n\r\n`;
  const { answers } = await sendRaw(service.apis[0]?.url ?? "", head);
  expect(answers[0]).toMatchObject({ status: 200, body: { query: "cocoa" } });
  await service.rest();
  const charges = (await service.ledgerOf(organizationId)).filter(({ kind }) => kind === "charge");
  expect(charges.map(({ mils }) => mils)).toEqual([-5, -5, -5]);
});

test("is refused beyond its daily limit", async () => {
  const { token } = await service.organization({ scopes: ["door"], dayMils: 5 });
  expect((await ask(token, "tea")).status).toBe(200);
  await service.until(async () => (await ask(token, "coffee")).status === 402);
});

test("opens nothing else, and not the door by a header", async () => {
  const { token } = await organizationOfDoor();
  const headers = { "x-api-key": token };
  const visitor = new PageVisitor(service);
  const statuses = {
    search: (await service.search(token, { keyword: "tea" })).status,
    usage: (await service.usage(token)).status,
    billing: (await visitor.signIn(token)).status,
    header: (await service.send("/searxng/search?q=tea&format=json", { headers })).status,
  };
  expect(statuses).toEqual({ search: 401, usage: 401, billing: 401, header: 401 });
  for (const path of [`/k/${token}/v1/usage`, `/v1/usage/k/${token}`, `/searxng/k/${token}/k/${token}/search?q=a`])
    expect([path, (await service.send(path)).status]).toEqual([path, 404]);
});

test("an ordinary token in an address is refused, and so are unknown ones", async () => {
  const { token } = await service.organization();
  const refused = { status: 401, body: { code: "unauthenticated" } };
  expect(await ask(token, "tea")).toMatchObject({ ...refused, body: { details: { reason: "scope", scope: "door" } } });
  for (const unknown of [newToken(), "smk_", "x"]) expect(await ask(unknown, "tea")).toMatchObject(refused);
});

test("unknown ones are looked up apart from those of known callers", async () => {
  const { token } = await organizationOfDoor();
  await ask(token, "known");
  const lookedUp = async (lane: string) => {
    const found = await Exposition.of(service.apis[0] ?? service.workers[0] ?? { opsUrl: "" });
    return found.value(`token_lookups_total{lane="${lane}",outcome="invalid"}`) ?? 0;
  };
  const before = await lookedUp("new");
  expect((await ask(newToken(), "tea")).status).toBe(401);
  expect(await lookedUp("new")).toBe(before + 1);
});

test("is revoked alone", async () => {
  const { organizationId, tokenId, token } = await organizationOfDoor();
  const issued = await operator.run("token", "issue", organizationId, "--scopes", "door", "--day", "100");
  const { token: other } = issued as { token: string }; // As the command prints it.
  await operator.run("token", "revoke", tokenId);
  await service.until(async () => (await ask(token, "revoked")).status === 401);
  expect((await ask(other, "tea")).status).toBe(200);
});

test("no log, metric, answer or recorded search has it, whatever is sent", async () => {
  const { token } = await organizationOfDoor();
  const secret = token.slice(0, -7);
  const path = `/searxng/k/${token}`;
  const sent = [
    `GET ${path}/search?q=tea&format=json HTTP/1.1\r\nHost: a\r\n`,
    `GET ${path}/search?format=json HTTP/1.1\r\nHost: a\r\nReferer: http://a${path}\r\n`,
    `GET ${path}/search?q=sandbox:error&format=json HTTP/1.1\r\nHost: a\r\n`,
    `GET ${path}/config HTTP/1.1\r\nHost: a\r\n`,
    `PUT ${path}/search HTTP/1.1\r\nHost: a\r\n`,
    `GET /k/${token}/search HTTP/1.1\r\nHost: a\r\n`,
    `GET /tavily/k/${token}/search HTTP/1.1\r\nHost: a\r\n`,
    `GET /searxng/K/${token}/search HTTP/1.1\r\nHost: a\r\n`,
    `GET ${path}%2fsearch HTTP/1.1\r\nHost: a\r\n`,
    ...["language", "pageno"].map(
      (name) => `GET ${path}/search?q=a&format=json&${name}=${token} HTTP/1.1\r\nHost: a\r\n`,
    ),
    ...[`docs/${token}`, `mcp/${token}`, `v1/usage?token=${token}`].map((at) => `GET /${at} HTTP/1.1\r\nHost: a\r\n`),
    `GET /v1/usage HTTP/1.1\r\nHost: ${token}\r\nX-Request-Id: ${token}\r\n`,
    `GET ${path}/search HTTP/1.1\r\nHost: a\r\nHost: ${token}\r\n`,
    `${token} ${path} HTTP/1.1\r\nHost: a\r\n`,
    `POST ${path}/search HTTP/1.1\r\nHost: a\r\nContent-Length: x${token}\r\n`,
    `GET /billing/k/${token} HTTP/1.1\r\nHost: a\r\n`,
    `GET ${path}/%ZZ HTTP/1.1\r\nHost: a\r\n`,
    `GET ${path} HTTP/9.9\r\nHost: a\r\n`,
    `GET ${path}/search?q=${"a".repeat(20_000)} HTTP/1.1\r\nHost: a\r\n`,
    `GET ${path}/search\r\nHost: a\r\n`,
  ];
  for (const head of sent) {
    const { answers } = await sendRaw(service.apis[0]?.url ?? "", `${head}Connection: close\r\n\r\n`);
    for (const { status, text, headers } of answers) {
      expect([status, text.includes(secret)]).toEqual([status, false]);
      expect(JSON.stringify([...headers])).not.toContain(secret);
      expect(["no-referrer", "same-origin"]).toContain(headers.get("referrer-policy"));
    }
  }
  await service.rest();
  for (const process of [...service.apis, ...service.workers]) {
    expect(JSON.stringify(process.lines) + process.stderr).not.toContain(secret);
    expect((await Exposition.of(process)).text).not.toContain(secret);
  }
  expect(await everythingInPostgres(service.databaseUrl)).not.toContain(secret);
});

/**
 * Sends a token in an address through the shipped proxy, with further changes.
 * @param line waits until the proxy has logged this.
 * @returns whether the proxy has logged the token.
 */
async function isLogged(changes: Record<string, string> = {}, line = ""): Promise<boolean> {
  const { token } = await organizationOfDoor();
  const api = service.apis[0];
  const port = await freePort();
  const address = (url: string | undefined) => new URL(url ?? "").host;
  const haproxy = await startHaproxy({
    config: "deploy/proxy/haproxy.cfg",
    changes: {
      "bind :3000": `bind 127.0.0.1:${port}`,
      "check port 3001": `check port ${new URL(api?.opsUrl ?? "").port}`,
      "server-template api 10 api:3000 resolvers compose resolve-prefer ipv4 init-addr none": `server api ${address(api?.url)}`,
      ...changes,
    },
  });
  try {
    const proxy = `http://127.0.0.1:${port}`;
    await service.until(async () => (await fetch(`${proxy}/docs`).catch(() => undefined))?.ok ?? false);
    const path = `/searxng/k/${token}/search`;
    // One is answered, one refused by the API, and two by the proxy itself.
    for (const request of [`${path}?q=tea&format=json`, path, `${path}?q=<tea>`, `${path}?q=${"a".repeat(20_000)}`])
      await sendRaw(proxy, `GET ${request} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
    await service.until(async () => haproxy.written().includes(line));
  } finally {
    await haproxy.stop();
  }
  return haproxy.written().includes(token.slice(0, -7));
}

describe.skipIf(withoutHaproxy !== "")(`the shipped proxy${withoutHaproxy}`, () => {
  test("logs no address", async () => {
    expect(await isLogged()).toBe(false);
  });

  test("would log it with the usual options, which the documentation names", async () => {
    const usual = { "local0 warning": "local0", "option dontlognull": "option httplog" };
    expect(await isLogged(usual, "GET /searxng/k/")).toBe(true);
  });
});

describe("always has a daily limit, and no other scope:", () => {
  let organization: Organization;
  beforeAll(async () => {
    organization = await service.organization();
  });

  test.each([
    {
      options: ["--scopes", "door"],
      says: "--day: expected an amount. A token with the scope door always has a daily limit.",
    },
    { options: ["--scopes", "door,search", "--day", "5"], says: "--scopes: expected door alone, or without it." },
  ])("an operator cannot issue one with $options", async ({ options, says }) => {
    const refused = await operator.try("token", "issue", organization.organizationId, ...options);
    expect(refused.exitCode).not.toBe(0);
    expect(refused.stderr).toContain(says);
  });

  test("an operator issues one, and cannot remove its limit", async () => {
    const args = ["token", "issue", organization.organizationId, "--scopes", "door", "--day", "10"];
    const issued = (await operator.run(...args)) as { token: string; tokenId: string };
    expect((await ask(issued.token, "tea")).status).toBe(200);
    const refused = await operator.try("limit", "token", issued.tokenId, "--day", "none");
    expect(refused.stderr).toContain("--day: expected an amount.");
    expect(await operator.run("limit", "token", issued.tokenId, "--day", "20")).toMatchObject({ dayLimitMils: 20 });
  });

  test("a person makes one on the account pages, and cannot remove its limit", async () => {
    const visitor = await signIn(service, organization);
    expect((await visitor.get("/billing/tokens")).text).toContain('name="scope" value="door"');
    const id = newId("tok");
    const form = { organization: organization.organizationId, id, name: "door", scope: "door", expires: "", month: "" };
    const refused = await visitor.post("/billing/tokens/create", { ...form, day: "" });
    expect(refused.status).toBe(400);
    expect(refused.text).toContain("A token for the address of a door always has a daily limit.");
    const { text } = await visitor.post("/billing/tokens/create", { ...form, day: "0.05" });
    const token = />(smk_[a-z0-9]{39})</.exec(text)?.[1] ?? "";
    expect((await ask(token, "tea")).status).toBe(200);
    const named = { organization: organization.organizationId, token: id, month: "" };
    const removed = await visitor.post("/billing/tokens/limits", { ...named, day: "" });
    expect(removed.text).toContain("A token for the address of a door always has a daily limit.");
    expect((await visitor.post("/billing/tokens/limits", { ...named, day: "0.10" })).status).toBe(303);
  });

  test("Postgres refuses any other", async () => {
    const { tokenId } = await organizationOfDoor();
    const change = (values: string) =>
      asOwner(service.databaseUrl, (client) => client.query(`update tokens set ${values} where id = $1`, [tokenId]));
    for (const values of ["day_limit_mils = null", "scopes = '{door,search}'"])
      await expect(change(values)).rejects.toMatchObject({ constraint: expect.stringContaining("a_door_token") });
  });
});
