import { checkMoneyModel } from "../shared/credits/model/money-model.ts";
import { Service } from "../harness/processes/service.ts";
import { freshDatabaseIn } from "../harness/servers/fresh-database.ts";
import { startRedis } from "../../local/redis.ts";
import type { Row, Say } from "./report.ts";

/** Sends random commands to the real scripts and functions, and compares the outcome with the money model. */
export async function moneyModel(options: {
  postgresUrl: string;
  runs: number;
  seed?: number | undefined;
  shrink?: boolean | undefined;
  say: Say;
}): Promise<Row[]> {
  const { postgresUrl, runs, seed, shrink, say } = options;
  const servers = { database: await freshDatabaseIn(postgresUrl), redis: await startRedis() };
  const service = await Service.start({ apis: 0, workers: 0, servers });
  const { database, redis } = service;
  say(`money model: ${runs} runs`);
  const promise = {
    what: `${runs} runs of random commands on the real scripts and functions`,
    promised: "as the model says",
  };
  try {
    const { met } = await checkMoneyModel({ database, redis, runs, seed, shrink });
    const steps = [...met.values()].reduce((sum, times) => sum + times, 0);
    return [{ ...promise, seen: `so, ${steps} steps`, held: true }];
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    say(message);
    return [{ ...promise, seen: message.split("\n")[0] ?? "", held: false }];
  } finally {
    await service.stop();
  }
}
