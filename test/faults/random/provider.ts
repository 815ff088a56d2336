import {
  hang,
  disconnect,
  huge,
  raw,
  refusal,
  type Reply,
  startSerperStub,
  tenOrganic,
} from "../../harness/stubs/serper-stub.ts";
import type { ProviderCall } from "../audit/evidence.ts";

/** Every way in which the provider can fail. */
export const providerFailures: Record<string, Reply> = {
  hang,
  disconnect,
  huge,
  "not JSON": raw(200, "<html><body>Please prove that you are not a robot.</body></html>", {
    "content-type": "text/html",
  }),
  "cut JSON": raw(200, '{"organic":[{"title":"Pum', { "content-type": "application/json" }),
  "another shape": raw(200, '{"organic":{"title":1},"searchParameters":[]}', { "content-type": "application/json" }),
  empty: raw(200, "", { "content-type": "application/json" }),
  redirect: raw(302, "", { location: "http://169.254.169.254/latest/meta-data" }),
  "out of credits": refusal(400, "Not enough credits"),
  "too many requests": refusal(429, "Rate limit exceeded"),
  broken: raw(500, "Internal Server Error"),
};

/** A provider that speaks Serper's format and records every call. */
export interface ProviderStub {
  url: string;
  calls: ProviderCall[];
  /** Makes requests fail this way, or succeed again if undefined. */
  fail: (failure: string | undefined) => void;
  close: () => Promise<void>;
}

/** @param latencyMsOf how long the provider takes for a keyword. */
export async function openProvider(latencyMsOf: (keyword: string) => number): Promise<ProviderStub> {
  const stub = await startSerperStub();
  const calls: ProviderCall[] = [];
  let failing: Reply | undefined;
  stub.otherwise = (request, response) => {
    const call = { keyword: String(request.body["q"]), answeredAtMs: Number.POSITIVE_INFINITY };
    calls.push(call);
    setTimeout(() => {
      if (failing) return failing(request, response);
      call.answeredAtMs = Date.now();
      tenOrganic(request, response);
    }, latencyMsOf(call.keyword));
  };
  const fail = (failure: string | undefined) => {
    failing = failure === undefined ? undefined : providerFailures[failure];
  };
  return { url: stub.url, calls, fail, close: stub.close };
}
