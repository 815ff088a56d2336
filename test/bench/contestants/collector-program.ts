/** A collector of traces that keeps none. At any message it starts and replies with the setting of the processes that send to it. */
import { startCollectorStub } from "../../harness/stubs/collector-stub.ts";
import { serve } from "../processes/asked-process.ts";

serve(async () => {
  const { url, spans, requests } = await startCollectorStub();
  setInterval(() => {
    spans.length = 0;
    requests.length = 0;
  }, 1_000).unref();
  return { OTEL_EXPORTER_OTLP_ENDPOINT: url };
});
