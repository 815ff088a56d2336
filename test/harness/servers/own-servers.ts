import { startPostgres } from "../../../shared/local/postgres.ts";
import { startRedis } from "../../../shared/local/redis.ts";
import { freshDatabaseIn } from "./fresh-database.ts";
import { Service } from "../processes/service.ts";

/** The whole service with servers of its own, for a program that is no test. */
export async function withOwnServers<T>(use: (service: Service) => Promise<T>): Promise<T> {
  const [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
  try {
    const service = await Service.start({ servers: { database: await freshDatabaseIn(postgres.url), redis } });
    try {
      return await use(service);
    } finally {
      await service.stop();
    }
  } finally {
    await Promise.all([postgres.stop(), redis.stop()]);
  }
}
