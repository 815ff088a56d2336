/** A provider with a delay: told `{delayMs}` it starts, and replies with the settings of a worker that asks it. */
import { z } from "zod";
import { startSerperStub, tenOrganic } from "../../harness/stubs/serper-stub.ts";
import { serve } from "../processes/serve.ts";

const message = z.object({ delayMs: z.number() });

serve(async (received) => {
  const { delayMs } = message.parse(received);
  const stub = await startSerperStub();
  stub.otherwise = (request, response) => {
    stub.requests.length = 0; // Nothing reads them, and a load sends very many.
    if (delayMs === 0) tenOrganic(request, response);
    else setTimeout(() => tenOrganic(request, response), delayMs);
  };
  return stub.settings;
});
