import { readSource } from "../harness/assertions/sources.ts";
import { page, tableRows } from "./markdown.ts";

/**
 * The tables of docs/operating/sizing.md. Their figures follow from those that the benchmarks measured, from what a search leaves
 * on disk, and from the limits of the files that are shipped.
 */

/** What the page assumes. */
const assumed = {
  rates: [10, 100, 1_000, 5_000],
  ratesOfCells: [5_000, 10_000, 100_000],
  /** The provider's time, and what the service adds under load. */
  searchSeconds: 2.1,
  /** Of the time that a process or a server is busy; of a worker's slots that are taken. */
  busyMax: 0.5,
  slotsTakenMax: 0.7,
  organizations: 10_000,
  organizationBytes: 1_000,
  /** How long an answer stays in an inbox. */
  answerSeconds: 1,
  redisProgramMb: 20,
  postgresGb: 1,
  connectionMb: 10,
  monthDays: 30,
};

type Row = Record<string, string | number>;

function numberIn(text: string | undefined, what: string): number {
  const found = /\d[\d,_]*(\.\d+)?/.exec(text ?? "")?.[0];
  if (found === undefined) throw new Error(`no figure for ${what}`);
  return Number(found.replaceAll(/[,_]/g, ""));
}

/** The figure of one column, in the row whose first cell begins with this and which has that column. */
function figure(path: string, [firstColumn, first]: [string, string], column: string): number {
  const rows = tableRows(page(path), firstColumn);
  const row = rows.find((one) => one[firstColumn]?.replaceAll("`", "").startsWith(first) && one[column] !== undefined);
  return numberIn(row?.[column], `${column} of ${first} in ${path}`);
}

const benchmarks = "docs/benchmarks.md";
const cpuOf = (part: string) => figure(benchmarks, ["case", "provider-1000-ms"], part) / 1_000_000;
const bytesOf = (what: string) => figure("docs/operating/retention.md", ["what", what], "bytes");
const inText = (path: string, form: RegExp) => numberIn(form.exec(readSource(path))?.[1], `${form} in ${path}`);

function measured() {
  const ofPools = (process: string) =>
    tableRows(page("docs/operating/managed-services.md"), "pool in Postgres")
      .filter((row) => row.process === process)
      .reduce((sum, row) => sum + Number(row.connections), 0);
  return {
    cpu: {
      all: cpuOf("CPU µs: all"),
      api: cpuOf("API"),
      worker: cpuOf("worker"),
      redis: cpuOf("Redis"),
      postgres: cpuOf("Postgres"),
    },
    /** Of Redis in the quickest case, as the other end of its range. */
    redisAtBest: figure(benchmarks, ["case", "connections-256"], "Redis") / 1_000_000,
    /** Of a search that comes alone and shares no batch. */
    cpuAlone: figure(benchmarks, ["arrivals", "1 × 1, 100/s"], "CPU ms") / 1_000,
    apiMb: figure(benchmarks, ["", "after 200,000"], "API MB, --container"),
    workerMb: figure(benchmarks, ["", "after 200,000"], "worker MB, --container"),
    waitingKb: {
      worker: inText(benchmarks, /A waiting search keeps (\d+) kB in the worker/),
      api: inText(benchmarks, /in the worker and (\d+) kB in the API/),
    },
    bytes: {
      ledger: bytesOf("entry in the ledger"),
      log: bytesOf("row in the search log"),
      keyed: bytesOf("answer under an Idempotency-Key"),
      inRedis: bytesOf("search that waits or runs"),
      answer: bytesOf("answer on its way"),
    },
    connections: { api: ofPools("API"), worker: ofPools("worker") },
    slots: inText("shared/config.ts", /WORKER_CONCURRENCY: wholeNumber\(1, ([\d_]+)\)/),
    proxy: {
      connections: inText("deploy/proxy/haproxy.cfg", /maxconn (\d+)/),
      ofAddress: inText("deploy/proxy/haproxy.cfg", /sc0_conn_cur gt (\d+)/),
      files: inText("docker-compose.yml", /nofile: (\d+)/),
    },
  };
}

const servers = (load: number) => Math.ceil(load / assumed.busyMax);
const powerOfTwo = (least: number) => 2 ** Math.ceil(Math.log2(least));
const gb = (bytes: number) => round(bytes / 1e9);
/** Two digits, and no more places than a reader can use. */
function round(value: number): number {
  return value >= 100 ? Math.round(value / 10) * 10 : Number(value.toPrecision(2));
}
const grouped = (value: number) => value.toLocaleString("en");

/** The processes and servers for a rate, with one API and one worker more than needed if one may fail. */
function installationFor(rate: number, { spare }: { spare: number }) {
  const { cpu, bytes, connections, slots } = measured();
  const inFlight = rate * assumed.searchSeconds;
  const apis = Math.max(1, servers(rate * cpu.api)) + spare;
  const workers = Math.max(servers(rate * cpu.worker), Math.ceil(inFlight / (slots * assumed.slotsTakenMax))) + spare;
  const redisMb =
    assumed.redisProgramMb +
    (inFlight * bytes.inRedis +
      rate * assumed.answerSeconds * bytes.answer +
      assumed.organizations * assumed.organizationBytes) /
      1e6;
  const toPostgres = apis * connections.api + workers * connections.worker;
  return {
    inFlight,
    apis,
    workers,
    redisMb,
    toPostgres,
    postgresCores: Math.max(1, servers(rate * cpu.postgres)) + spare,
    postgresGb: assumed.postgresGb + (toPostgres * assumed.connectionMb) / 1_000,
  };
}

/** The limits that more processes do not raise, by the rate at which each is reached. */
function limits(): { name: string; rate: number; raise: string }[] {
  const { cpu, redisAtBest, proxy } = measured();
  const rateOf = (inFlight: number) => Math.floor(inFlight / assumed.searchSeconds);
  return [
    {
      name: "one Redis is busy half of the time",
      rate: Math.floor(assumed.busyMax / cpu.redis),
      raise: "answers come later from here on; a faster core",
    },
    {
      name: "one Redis is busy all the time, at the cost of slow providers",
      rate: Math.floor(1 / cpu.redis),
      raise: "[cells](#past-one-redis)",
    },
    {
      name: "one Redis is busy all the time, at its cost in large batches",
      rate: Math.floor(1 / redisAtBest),
      raise: "[cells](#past-one-redis)",
    },
    {
      name: `connections of one address at the proxy: ${grouped(proxy.ofAddress)}`,
      rate: rateOf(proxy.ofAddress),
      raise: "`sc0_conn_cur gt` in the proxy's configuration",
    },
    {
      name: `connections at the proxy: ${grouped(proxy.connections)}`,
      rate: rateOf(proxy.connections),
      raise: "`maxconn` there",
    },
    {
      name: `open files of the proxy: ${grouped(proxy.files)}, two for a search`,
      rate: rateOf(proxy.files / 2),
      raise: "`nofile` in `docker-compose.yml`",
    },
  ].toSorted((a, b) => a.rate - b.rate);
}

function bindsNext(rate: number): string {
  const next = limits().find((limit) => limit.rate >= rate);
  return next ? `${next.name.replace(/,.*/, "")}, at ${grouped(next.rate)}/s` : "has passed every limit below";
}

const installations = (): Row[] =>
  assumed.rates.map((rate) => {
    const needs = installationFor(rate, { spare: 1 });
    const redis = Math.ceil((rate * measured().cpu.redis) / assumed.busyMax);
    return {
      "searches/s": grouped(rate),
      "in flight": grouped(needs.inFlight),
      APIs: needs.apis,
      workers: needs.workers,
      "Redis servers": redis === 1 ? 1 : `${redis} ([cells](#past-one-redis))`,
      "data in Redis MB": round(needs.redisMb),
      "Postgres cores": needs.postgresCores,
      "Postgres GB": powerOfTwo(needs.postgresGb),
      "connections to Postgres": needs.toPostgres,
      "binds next": bindsNext(rate),
    };
  });

const limitRows = (): Row[] =>
  limits().map(({ name, rate, raise }) => ({
    limit: name,
    "reached at searches/s": grouped(rate),
    "what raises it": raise,
  }));

const disks = (): Row[] =>
  assumed.rates.map((rate) => {
    const { bytes } = measured();
    const day = rate * 86_400;
    return {
      "searches/s all day": grouped(rate),
      "million searches a day": round(day / 1e6),
      "ledger GB a month": gb(day * assumed.monthDays * bytes.ledger),
      "search log GB in 30 days": gb(day * 30 * bytes.log),
      "answers GB if all have keys": gb(day * 2 * bytes.keyed),
    };
  });

const smallest = (): Row[] =>
  assumed.rates.slice(0, 3).map((rate) => {
    const { apiMb, workerMb, waitingKb, cpu, cpuAlone } = measured();
    const { apis, workers, inFlight, redisMb, postgresGb } = installationFor(rate, { spare: 0 });
    const cpuOfSearch = rate >= 1 / cpuAlone ? cpu.all : cpuAlone;
    const waitingMb = (inFlight * (waitingKb.api + waitingKb.worker)) / 1_000;
    const memoryMb = apis * apiMb + workers * workerMb + waitingMb + 2 * redisMb + postgresGb * 1_000;
    return {
      "on one server, searches/s": grouped(rate),
      APIs: apis,
      workers,
      "CPU s a second": round(rate * cpuOfSearch),
      cores: powerOfTwo(servers(rate * cpuOfSearch)),
      "memory GB": powerOfTwo(memoryMb / 1_000),
    };
  });

const proxies = (): Row[] =>
  assumed.rates.map((rate) => {
    const { proxy } = measured();
    const needed = Math.ceil((rate * assumed.searchSeconds) / assumed.busyMax / 1_000) * 1_000;
    const connections = Math.max(proxy.connections, needed);
    return {
      "proxy, searches/s": grouped(rate),
      maxconn: connections,
      "sc0_conn_cur, behind one address": Math.max(proxy.ofAddress, needed),
      nofile: Math.max(proxy.files, 2 * connections + 1_000),
    };
  });

const cells = (): Row[] =>
  assumed.ratesOfCells.map((rate) => {
    const { cpu, bytes } = measured();
    const count = Math.ceil((rate * cpu.redis) / assumed.busyMax);
    const cell = installationFor(rate / count, { spare: 1 });
    return {
      "searches/s in cells": grouped(rate),
      cells: count,
      "APIs of a cell": cell.apis,
      "workers of a cell": cell.workers,
      "in flight": grouped(Math.round(rate * assumed.searchSeconds)),
      "Postgres cores": servers(rate * cpu.postgres) + 1,
      "connections to Postgres": grouped(count * cell.toPostgres),
      "ledger and log GB a day": gb(rate * 86_400 * (bytes.ledger + bytes.log)),
    };
  });

function toTable(rows: readonly Row[]): string {
  const titles = Object.keys(rows[0] ?? {});
  const line = (values: readonly (string | number)[]) => `| ${values.join(" | ")} |`;
  return [
    line(titles),
    line(titles.map(() => "---")),
    ...rows.map((row) => line(titles.map((title) => row[title] ?? ""))),
  ].join("\n");
}

/** The page with its tables computed anew: each replaces the one whose first column has the same title. */
export function withComputedTables(text: string): string {
  const tables = [installations(), limitRows(), proxies(), disks(), smallest(), cells()].map(toTable);
  let computed = text;
  for (const table of tables) {
    const start = `\n${table.slice(0, table.indexOf(" |"))} |`;
    const at = computed.indexOf(start);
    if (at === -1) throw new Error(`the page has no table that begins with ${start}`);
    const rest = computed.slice(at + 1);
    computed = computed.slice(0, at + 1) + table + rest.slice(rest.search(/\n(?!\|)/));
  }
  return computed;
}
