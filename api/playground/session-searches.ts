import type { Context } from "../../shared/process/context.ts";
import { timeOfId } from "../../shared/ids.ts";
import { throttledWarning } from "../../shared/log.ts";
import { sessionSearchesOf } from "../billing/session/session-keys.ts";
import { execPipeline } from "../../shared/redis/connect.ts";
import { type LoggedSearch, readSearches } from "../../shared/search-log/read-search-log.ts";
import type { SignedIn } from "../billing/session/sessions.ts";

export interface SessionSearch {
  requestId: string;
  /** Undefined if the search log does not have it yet, or no longer. */
  query: LoggedSearch["query"] | undefined;
}

const keptMax = 10;

/**
 * The newest answered searches of each session. Redis has only their request ids. The queries are read from the search log, so they
 * are kept no longer than there. No method throws, because a paid answer is shown even without this list.
 */
export class SessionSearches {
  readonly #parts: Pick<Context, "redis" | "clock" | "database">;
  readonly #warn: (error: unknown) => void;

  constructor({ log, ...parts }: Pick<Context, "redis" | "clock" | "database" | "log">) {
    this.#parts = parts;
    this.#warn = throttledWarning(log, "cannot read or store the searches of a session");
  }

  /** Stores the id of an answered search. A repeat keeps its position. */
  async add(signedIn: SignedIn, requestId: string): Promise<void> {
    const { redis, clock } = this.#parts;
    const key = keyOf(signedIn);
    const added = redis
      .multi()
      .zadd(key, timeOfId(requestId).getTime(), requestId)
      .pexpire(key, Math.ceil(signedIn.session.endsAtMs - clock.nowMs()));
    try {
      await execPipeline(added);
      const older = await redis.zrange(key, "0", String(-1 - keptMax));
      if (older.length > 0) await redis.zrem(key, ...older);
    } catch (error) {
      this.#warn(error);
    }
  }

  /** Reads the searches of a session, the newest first. @param current the search whose answer is about to be shown. */
  async read(signedIn: SignedIn, current?: SessionSearch): Promise<SessionSearch[]> {
    const { redis, database } = this.#parts;
    try {
      const ids = (await redis.zrange(keyOf(signedIn), String(-keptMax), "-1")).toReversed();
      const searches = await readSearches(database, signedIn.caller.organizationId, ids);
      return ids.map((requestId) =>
        requestId === current?.requestId ? current : { requestId, query: searches.get(requestId)?.query },
      );
    } catch (error) {
      this.#warn(error);
      return [];
    }
  }
}

const keyOf = ({ session, caller }: SignedIn) => sessionSearchesOf(caller.organizationId, session.idHash);
