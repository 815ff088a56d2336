import {
  hang,
  hangUp,
  huge,
  raw,
  refusal,
  type Reply,
  startSerperStub,
  tenOrganic,
} from "../../harness/stubs/serper-stub.ts";

/** One request that reached the provider. */
export interface Asked {
  keyword: string;
  /** When the provider gave it a page of results, by the clock of this machine; infinite where it never did. */
  answeredAtMs: number;
}

/** All ways of the provider to fail a request. */
export const ailments: Record<string, Reply> = {
  hang,
  "hang up": hangUp,
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

/** A search provider of our own, at the network's edge: it speaks Serper's format and keeps a log of who asked. */
export interface ProviderStub {
  url: string;
  asked: Asked[];
  /** From now on requests end this way; none: they are answered. */
  ail: (ailment: string | undefined) => void;
  close: () => Promise<void>;
}

/** @param latencyMsOf how long the provider thinks about a keyword. */
export async function openProvider(latencyMsOf: (keyword: string) => number): Promise<ProviderStub> {
  const stub = await startSerperStub();
  const asked: Asked[] = [];
  let ailment: Reply | undefined;
  stub.otherwise = (request, response) => {
    const entry = { keyword: String(request.body["q"]), answeredAtMs: Number.POSITIVE_INFINITY };
    asked.push(entry);
    setTimeout(() => {
      if (ailment) return ailment(request, response);
      entry.answeredAtMs = Date.now();
      tenOrganic(request, response);
    }, latencyMsOf(entry.keyword));
  };
  const ail = (name: string | undefined) => {
    ailment = name === undefined ? undefined : ailments[name];
  };
  return { url: stub.url, asked, ail, close: stub.close };
}
