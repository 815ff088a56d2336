import { connect } from "node:net";
import { once } from "node:events";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { freePort } from "../../local/ports.ts";
import { seesWorkers } from "../harness/assertions/metrics.ts";
import { SearchStream } from "../harness/clients/search-stream.ts";
import { type Api, type Organization, Service } from "../harness/processes/service.ts";
import { startHaproxy, withoutHaproxy } from "../harness/servers/haproxy.ts";
import { type NameServer, startNameServer } from "../harness/stubs/name-server.ts";
import { hang, type SerperStub, startSerperStub } from "../harness/stubs/serper-stub.ts";

/**
 * An upgrade as deploy/upgrade.sh makes it, behind the real proxy with its real configuration: only ports and the address of
 * the DNS differ. Each API has a loopback address of its own, as each container has one.
 */

const callers = 8;
/** Instead of 4,000: for one address. */
const connectionsMax = 40;

interface Ports {
  proxy: number;
  api: number;
  ops: number;
}

let stub: SerperStub;
let names: NameServer;
let service: Service;
let ports: Ports;
let proxy: Awaited<ReturnType<typeof startProxy>>;
let organization: Organization;

/** HAProxy with the configuration of the checkout for the ports of this test, and with fewer connections for one address. */
async function startProxy() {
  const started = await startHaproxy({
    config: "deploy/proxy/haproxy.cfg",
    changes: {
      "127.0.0.11:53": `127.0.0.1:${names.port}`,
      "bind :3000": `bind 127.0.0.1:${ports.proxy}`,
      "check port 3001": `check port ${ports.ops}`,
      "api:3000": `api:${ports.api}`,
      "sc0_conn_cur gt 4000": `sc0_conn_cur gt ${connectionsMax}`,
    },
  });
  const asked = () => fetch(`http://127.0.0.1:${ports.proxy}/livez`).catch(() => undefined);
  await service.until(async () => (await asked()) !== undefined);
  return started;
}

let addressesUsed = 0;

/** An API in a container of its own: Docker's DNS has its address from then on. */
async function startApi(): Promise<{ api: Api; address: string }> {
  addressesUsed += 1;
  const address = `127.0.7.${addressesUsed}`;
  const settings = {
    HOST: address,
    API_PORT: String(ports.api),
    API_OPS_PORT: String(ports.ops),
    TRUSTED_PROXIES: "1",
  };
  const api = await service.startApi(settings);
  // Not on 127.0.0.1, where the harness expects it.
  Object.assign(api, { url: `http://${address}:${ports.api}`, opsUrl: `http://${address}:${ports.ops}` });
  await service.until(() => seesWorkers(api));
  names.addresses.add(address);
  return { api, address };
}

const isServing = (api: Api) => service.until(async () => api.lines.some(({ msg }) => msg === "request"));

async function search(keyword: string, signal?: AbortSignal): Promise<{ status: number; text: string }> {
  try {
    const response = await fetch(`http://127.0.0.1:${ports.proxy}/v1/serp/search`, {
      method: "POST",
      ...(signal && { signal }),
      headers: { authorization: `Bearer ${organization.token}`, "content-type": "application/json" },
      body: JSON.stringify({ keyword }),
    });
    return { status: response.status, text: await response.text() };
  } catch (error) {
    return { status: 0, text: `${String(error)} ${String(error instanceof Error ? error.cause : "")}` };
  }
}

/** A connection to the proxy from another address of this host. */
function openConnection(localAddress: string) {
  const socket = connect({ host: "127.0.0.1", port: ports.proxy, localAddress });
  socket.on("error", () => undefined); // The proxy refuses some.
  const closed = new Promise((resolve) => socket.once("close", resolve));
  return { socket, closed };
}

const chargesOf = async ({ organizationId }: Organization) =>
  (await service.ledgerOf(organizationId)).filter(({ kind }) => kind === "charge").length;

describe.skipIf(withoutHaproxy !== "")(`behind the proxy of deploy/proxy${withoutHaproxy}`, () => {
  beforeAll(async () => {
    [stub, names] = await Promise.all([startSerperStub(), startNameServer()]);
    ports = { proxy: await freePort(), api: await freePort(), ops: await freePort() };
    service = await Service.start({ apis: 0, workers: 2, environment: stub.settings });
    proxy = await startProxy();
  });
  beforeEach(async () => {
    organization = await service.organization({
      creditMils: 10_000_000,
      terms: { windowLimit: 10_000_000, concurrency: 1_000 },
    });
  });
  afterAll(async () => {
    await proxy.stop();
    await Promise.all([service.stop(), stub.close(), names.close()]);
  });

  test("a caller that disconnects while its search runs pays nothing, as without the proxy", async () => {
    const { api, address } = await startApi();
    await service.until(async () => (await search("warm")).status === 200);
    const chargesBefore = await chargesOf(organization);
    const disconnect = new AbortController();
    stub.next.push(hang);
    const asked = search("disconnected", disconnect.signal);
    await service.until(async () => stub.requests.some(({ body }) => body.q === "disconnected"));
    disconnect.abort();
    expect((await asked).status).toBe(0);
    await service.until(async () => {
      const refunds = (await service.ledgerOf(organization.organizationId)).filter(({ kind }) => kind === "refund");
      return refunds.some(({ reason }) => reason === "caller_disconnected");
    });
    expect(await chargesOf(organization)).toBe(chargesBefore);
    names.addresses.delete(address);
    expect(await api.stop()).toBe(0);
  });

  test("an address that opens as many connections as it can leaves those of others alone", async () => {
    // The threads of the proxy do not count connections in the order in which they were opened: any one of them is refused.
    const opened = Array.from({ length: connectionsMax + 1 }, () => openConnection("127.0.0.2"));
    await Promise.race(opened.map(({ closed }) => closed));
    const other = openConnection("127.0.0.3");
    other.socket.write("GET /livez HTTP/1.1\r\nHost: a\r\n\r\n");
    expect(String(await once(other.socket, "data"))).toMatch(/^HTTP\/1\.1 \d{3} /);
    expect(opened.some(({ socket }) => socket.closed)).toBe(true);
    for (const { socket } of [...opened, other]) socket.destroy();
  });

  test("replacing each worker and then each API fails no search, charges each once, and runs none twice", async () => {
    const old = [await startApi(), await startApi()];
    await service.until(async () => (await search("first")).status === 200);
    const stream = new SearchStream(service, callers, (nth) => search(`upgrade ${nth}`));
    try {
      for (const { api } of old) await isServing(api);
      for (const worker of service.workers.slice()) {
        await service.startWorker();
        expect(await worker.stop()).toBe(0);
      }
      const next = [await startApi(), await startApi()];
      for (const { api } of next) await isServing(api);
      for (const { api, address } of old) {
        expect(await api.stop()).toBe(0);
        names.addresses.delete(address);
      }
      await stream.more(9 * callers);
    } finally {
      await stream.end();
    }
    expect(stream.failures).toEqual([]);
    await service.rest();
    const ledger = await service.ledgerOf(organization.organizationId);
    const charges = ledger.filter(({ kind }) => kind === "charge");
    expect(ledger.filter(({ kind }) => !["grant", "charge"].includes(kind))).toEqual([]);
    expect(charges.length).toBe(stream.answers.length + 1);
    expect(await service.verify()).toMatchObject({ ok: true, violations: [] });
    expect(service.apis.flatMap(({ errors }) => errors)).toEqual([]);
  });
});
