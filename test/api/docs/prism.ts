import { getHttpOperationsFromSpec } from "@stoplight/prism-http/dist/utils/operations.js";
import { createServer } from "@stoplight/prism-http-server";
import { openLog } from "../../../shared/log.ts";

/** A proxy in front of an API. It answers with an error if a request or a response does not match the document. */
export interface Prism {
  url: string;
  close: () => Promise<void>;
}

/** @param validates.requests false for tests that send invalid requests on purpose; responses are always validated. */
export async function startPrism(document: object, upstream: string, validates: { requests: boolean }): Promise<Prism> {
  const operations = await getHttpOperationsFromSpec(document);
  const server = createServer(operations, {
    components: { logger: openLog({ name: "prism", level: "silent" }) },
    config: {
      isProxy: true,
      upstream: new URL(upstream),
      errors: true,
      validateRequest: validates.requests,
      checkSecurity: validates.requests,
      validateResponse: true,
      mock: { dynamic: false },
      upstreamProxy: undefined,
    },
    cors: false,
  });
  const url = await server.listen(0, "127.0.0.1");
  return { url, close: () => server.close() };
}
