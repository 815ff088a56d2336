import { subscribe } from "node:diagnostics_channel";
import { ServerResponse } from "node:http";
import pg from "pg";
import { die, edgeAt, isAbout } from "./kill-order.ts";
import type { Step } from "./points.ts";

const stepsOfStatements: Record<string, Step> = {
  find_callers: "identity",
  read_credit: "seed",
  read_paid_keys: "look",
  read_stored_answers: "fetch",
  decide_searches: "settle",
  charge_alone: "settle",
  reverse_charges: "reverse",
  confirm_delivered: "confirm",
};
// These statements name tokens and requests, and no organization.
const nameless = new Set<Step>(["identity", "confirm"]);

type Callback = (error: Error | null, result: unknown) => void;

export function watchPostgres(): void {
  // The pool uses one of the many overloads of `query`.
  const client = pg.Client.prototype as unknown as {
    query: (config: unknown, values?: unknown, callback?: Callback) => unknown;
  };
  const { query } = client;
  client.query = function (config, values, callback) {
    const step = stepOf(config);
    if (!step) return query.call(this, config, values, callback);
    if (edgeAt(step) === "before") die();
    return query.call(this, config, values, (error: Error | null, result: unknown) => {
      if (!error && edgeAt(step) === "after") die();
      callback?.(error, result);
    });
  };
}

function stepOf(config: unknown): Step | undefined {
  if (typeof config !== "object" || config === null || !("name" in config)) return undefined;
  const step = stepsOfStatements[String(config.name)];
  if (!step || edgeAt(step) === undefined) return undefined;
  return nameless.has(step) || isAbout(JSON.stringify(config)) ? step : undefined;
}

/** undici publishes the creation of a request, and the arrival of the end of its response. */
export function watchProvider(): void {
  const at = (edge: string) => () => {
    if (edgeAt("ask") === edge) die();
  };
  subscribe("undici:request:create", at("before"));
  subscribe("undici:request:trailers", at("after"));
}

/** The 200 to a search: before its first byte, after half of its body, or after its last byte was handed to the socket. */
export function watchAnswers(): void {
  // oxlint-disable-next-line typescript/unbound-method -- called with the response that it was called on
  const { end } = ServerResponse.prototype;
  const watched = function (this: ServerResponse, ...args: unknown[]) {
    const isAnswer = this.statusCode === 200 && this.req.url === "/v1/serp/search";
    const edge = isAnswer ? edgeAt("respond") : undefined;
    if (edge === "before") die();
    if (edge === "after") this.prependOnceListener("finish", () => die());
    const [body] = args;
    if (edge === "amid" && body instanceof Buffer) {
      this.write(body.subarray(0, body.length / 2), () => die());
      return this;
    }
    return Reflect.apply(end, this, args);
  };
  // It passes its arguments on, whichever overload of `end` they are for.
  ServerResponse.prototype.end = watched as typeof end;
}
