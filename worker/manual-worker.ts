import { type IQueueBackend, type Job, type JobJson, Worker, type WorkerOptions } from "bullmq";
import type { Redis } from "ioredis";
import { protocolTimes } from "../shared/protocol-times.ts";
import { acquiringLease, TakenLease } from "./engine/flight-leases.ts";
import { failedKept, prefix, queueKeys, queueName } from "../shared/queue/search-queue.ts";

// A failed search is refunded and answered, not retried; only the job of a dead worker is taken over. BullMQ reads this from
// the worker where a job has no options of its own, which would be serialized, stored and parsed for every search.
export const keepJobs = {
  removeOnComplete: { count: 0 },
  removeOnFail: { age: failedKept.seconds, count: failedKept.searches },
} satisfies Pick<WorkerOptions, "removeOnComplete" | "removeOnFail">;
// Of workers that die with the job. A search that has killed three workers is not given to a fourth.
const takeOversMax = 2;
// BullMQ sets a marker with every job that it takes, which would wake each idle worker for no job.
const unreadMarker = `${queueKeys.marker}-unread`;
// Where BullMQ looks for jobs that wait by their turn and finds none. It then deletes the counter of their scores.
const noTurns = { prioritized: `${queueKeys.waitingByTurn}-none`, pc: `${queueKeys.waitingByTurn}-none-counter` };

export interface TakenJob {
  job: Job;
  /** Of its lock. */
  token: string;
  /** Of its flight, if it was acquired with the job. */
  lease: TakenLease | undefined;
}

/** BullMQ's scripts that take a job. */
const takeScripts = /^moveTo(Active|Finished):/;

/** Has BullMQ acquire the leases of the jobs that it takes on this connection. */
export function withLeases(connection: Redis): Redis {
  const define = connection.defineCommand.bind(connection);
  connection.defineCommand = (name, { lua, ...definition }) =>
    define(name, { ...definition, lua: takeScripts.test(name) ? acquiringLease(lua) : lua });
  return connection;
}

/** BullMQ's worker without its loop: it has no connection for that loop to block on, and wakes no other worker. */
export class ManualWorker extends Worker {
  /** The marker that wakes this worker and no other. */
  readonly ownMarker: string;
  readonly #connection: Redis;

  /** @param connection for everything that must not wait for a job. @param name the name of the worker in its jobs. */
  constructor(connection: Redis, name: string) {
    super(queueName, null, {
      connection,
      prefix,
      name,
      lockDuration: protocolTimes.jobLockMs,
      stalledInterval: protocolTimes.stallCheckIntervalMs,
      maxStalledCount: takeOversMax,
      autorun: false,
      ...keepJobs,
    });
    this.ownMarker = `${queueKeys.marker}-${name}`;
    this.#connection = connection;
  }

  /** Ends the wait of this worker for a job. If that fails, it ends within `redisBlockMs`. Never rejects. */
  async wake(): Promise<void> {
    const marking = this.#connection.multi().zadd(this.ownMarker, 0, "0");
    await marking
      .pexpire(this.ownMarker, protocolTimes.redisBlockMs)
      .exec()
      .catch(() => undefined);
  }

  protected override createBackend(): void {
    this.backend = this.backendFactory(this.name, this.opts, { withBlockingConnection: false });
    this.backend.keys["marker"] = unreadMarker;
  }

  /** BullMQ's commands on this connection. @param options.byTurn whether they also take jobs that wait by their turn. */
  backendOn(connection: Redis, { byTurn }: { byTurn: boolean }): IQueueBackend {
    const backend = this.backendFactory(this.name, { ...this.opts, connection }, { withBlockingConnection: false });
    Object.assign(backend.keys, { marker: unreadMarker }, byTurn ? {} : noTurns);
    backend.on("error", (error: Error) => this.emit("error", error));
    return backend;
  }

  get locks(): typeof this.lockManager {
    return this.lockManager;
  }

  /** The job in BullMQ's reply, if there was one to take. */
  async jobIn(reply: unknown, token: string): Promise<TakenJob | undefined> {
    if (!Array.isArray(reply)) return undefined;
    // BullMQ does not say the types of the reply, which it reads in the same way.
    const [data, id, holder] = reply as [JobJson?, string?, (string | number)?];
    const job = await this.nextJobFromJobData(data, id, token);
    if (!job) return undefined;
    const { flight } = job.data;
    const lease = typeof holder === "string" ? new TakenLease(this.#connection, flight, holder) : undefined;
    return { job, token, lease };
  }
}
