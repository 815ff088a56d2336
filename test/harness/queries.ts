import { z } from "zod";
import { type Config, readConfig } from "../../shared/config.ts";
import { CallerError } from "../../shared/errors.ts";
import { type Query, readQuery } from "../../shared/query.ts";

/** A query as the API would hand it on. */
export function query(fields: object = {}): Query {
  return readQuery({ keyword: "garden pump", ...fields });
}

/** Settings of a worker that reaches neither Postgres nor Redis, but providers. */
export function engineConfig(settings: Record<string, string>): Config {
  return readConfig({ DATABASE_URL: "postgres://localhost/none", REDIS_URL: "redis://localhost", ...settings });
}

/** How a request body is refused, or undefined where it is taken. */
export function refusalOf(body: unknown): CallerError | undefined {
  try {
    readQuery(body);
    return undefined;
  } catch (error) {
    if (error instanceof CallerError) return error;
    throw error;
  }
}

const badRequest = z.object({ issues: z.array(z.strictObject({ path: z.string(), message: z.string() })) });

/** What is wrong with a body that is refused as `bad_request`. */
export function issuesOf(body: unknown): { path: string; message: string }[] {
  return badRequest.parse(refusalOf(body)?.details).issues;
}
