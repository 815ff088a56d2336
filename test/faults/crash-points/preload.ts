/**
 * Loaded into an API or a worker before its own code (`node --import`), which knows nothing of it. It watches what the
 * process sends and receives, and kills it at the step that it is ordered to. Orders come from the process that started
 * it, the first one before anything else runs. When that process ends, this one ends too.
 */
import { once } from "node:events";
import { arm } from "./kill-order.ts";
import { orderMessage } from "./points.ts";
import { watchAnswers, watchPostgres, watchProvider } from "./watch-postgres-and-http.ts";
import { watchRedis } from "./watch-redis.ts";

watchRedis();
watchPostgres();
watchProvider();
watchAnswers();

const obey = (message: unknown) => {
  arm(orderMessage.parse(message).order);
  process.send?.("armed");
};
process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
const [first] = await once(process, "message");
obey(first);
process.on("message", obey);
process.channel?.unref();
