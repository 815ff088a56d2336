/**
 * Preloaded into an API or a worker (`node --import`), which does not know about it. It watches what the process sends and
 * receives, and kills the process at the ordered step. The parent process sends the orders, the first one before any other code
 * runs. When the parent ends, this process ends too.
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
