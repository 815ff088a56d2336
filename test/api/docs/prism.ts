import { getHttpOperationsFromSpec } from "@stoplight/prism-http/dist/utils/operations.js";
import { createServer } from "@stoplight/prism-http-server";
import { openLog } from "../../../shared/log.ts";

/** A proxy in front of an API that answers with an error of its own where what passes it is not as the document says. */
export interface Prism {
  url: string;
  close: () => Promise<void>;
}

/** @param sees what is held to the document: requests are not where they are meant to be wrong. */
export async function startPrism(document: object, upstream: string, sees: { requests: boolean }): Promise<Prism> {
  const operations = await getHttpOperationsFromSpec(document);
  const server = createServer(operations, {
    components: { logger: openLog({ name: "prism", level: "silent" }) },
    config: {
      isProxy: true,
      upstream: new URL(upstream),
      errors: true,
      validateRequest: sees.requests,
      checkSecurity: sees.requests,
      validateResponse: true,
      mock: { dynamic: false },
      upstreamProxy: undefined,
    },
    cors: false,
  });
  const url = await server.listen(0, "127.0.0.1");
  return { url, close: () => server.close() };
}
