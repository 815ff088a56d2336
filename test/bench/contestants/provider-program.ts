/** A provider with a delay. At the message `{delayMs}` it starts and replies with the settings of its workers. */
import { z } from "zod";
import { delayed, startSerperStub, tenOrganic } from "../../harness/stubs/serper-stub.ts";
import { serve } from "../processes/asked-process.ts";

const message = z.object({ delayMs: z.number() });

serve(async (received) => {
  const { delayMs } = message.parse(received);
  const stub = await startSerperStub();
  const answer = delayMs === 0 ? tenOrganic : delayed(delayMs);
  stub.otherwise = (request, response) => {
    stub.requests.length = 0; // Nothing reads them, and a load sends many.
    answer(request, response);
  };
  return stub.settings;
});
