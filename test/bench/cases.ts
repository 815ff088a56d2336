import type { Callers, ContestantName } from "./contestants/contestant.ts";
import type { Stage } from "./contestants/serpmill.ts";
import type { RequestKind } from "./load/load.ts";

/** A load on the service, and what it is compared with. */
export interface Case {
  name: string;
  stage: Stage;
  request: RequestKind;
  callers: Callers;
  /** The expected status of every answer. */
  status: number;
  connections: number;
  /** The contestants that carry the same load in turn. */
  beside: readonly Exclude<ContestantName, "serpmill">[];
}

const single: Stage = { apis: 1, workers: 1 };
const usual = {
  stage: single,
  request: "search",
  callers: "hundred",
  status: 200,
  connections: 64,
  beside: [],
} as const satisfies Omit<Case, "name">;

const atConnections = (connections: number): Case => ({
  ...usual,
  name: `connections-${connections}`,
  connections,
  beside: ["bullmq", "yardstick"],
});

const refused = (status: number, callers: Callers): Case => ({
  ...usual,
  name: `refused-${status}`,
  request: "refused",
  callers,
  status,
});

const processes = (apis: number, workers: number): Case => ({
  ...usual,
  name: `apis-${apis}-workers-${workers}`,
  stage: { apis, workers },
  connections: 256,
});

const slowProvider = (providerMs: number, hasDefaultLimits: boolean): Case => ({
  ...usual,
  name: `provider-${providerMs}-ms${hasDefaultLimits ? "-default-limits" : ""}`,
  stage: { ...single, providerMs, hasDefaultLimits },
  // A search that waits for a provider needs little but its connection.
  connections: providerMs < 1_000 ? 256 : 1_000,
});

/** Every case. Distinct keywords of a hundred organizations over 64 connections, unless the name says otherwise. */
export const cases: readonly Case[] = [
  ...[1, 16, 64, 256].map(atConnections),
  { ...usual, name: "one-organization", callers: "one", beside: ["yardstick"] },
  { ...usual, name: "keyed", request: "keyed" },
  { ...usual, name: "spending-limits", callers: "spending-limits" },
  { ...usual, name: "equal", request: "equal" },
  { ...usual, name: "depth-100", request: "depth-100" },
  { ...usual, name: "tracing", beside: ["traced"] },
  { ...usual, name: "mcp", request: "mcp" },
  { ...usual, name: "mcp-2025-11-25", request: "mcp-2025-11-25" },
  { ...usual, name: "usage", request: "usage" },
  refused(401, "unknown"),
  refused(402, "without-credit"),
  refused(429, "limited"),
  processes(3, 1),
  processes(1, 3),
  processes(3, 3),
  slowProvider(0, false),
  slowProvider(200, false),
  slowProvider(1_000, false),
  slowProvider(1_000, true),
];

/** The cases with these names, or all without names. */
export const chooseCases = (names?: readonly string[]): readonly Case[] =>
  names === undefined ? cases : cases.filter(({ name }) => names.includes(name));
