import { startPostgres } from "../../../shared/local/postgres.ts";
import { startRedis } from "../../../shared/local/redis.ts";
import { freshDatabaseIn } from "./fresh-database.ts";
import { Service } from "../processes/service.ts";

/** The whole service with its own servers, for programs that are not tests. */
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
