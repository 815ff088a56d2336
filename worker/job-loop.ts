import { setTimeout as sleep } from "node:timers/promises";
import type { IQueueBackend, Job } from "bullmq";
import type { Redis } from "ioredis";
import { InFlightEntries } from "../shared/concurrency/in-flight-entries.ts";
import { waitFor } from "../shared/concurrency/wait-for.ts";
import { throttledWarning } from "../shared/log.ts";
import type { Context } from "../shared/process/context.ts";
import { protocolTimes } from "../shared/protocol-times.ts";
import { readBacklog } from "../shared/queue/backlog.ts";
import { queueKeys } from "../shared/queue/search-queue.ts";
import { type SearchJob, searchJob } from "../shared/queue/search-job.ts";
import { Script } from "../shared/redis/script.ts";
import type { TakenLease } from "./engine/flight-leases.ts";
import { keepJobs, ManualWorker, type TakenJob, withLeases } from "./manual-worker.ts";

/**
 * Takes jobs from BullMQ's queue by hand, as https://docs.bullmq.io/patterns/manually-fetching-jobs describes. BullMQ's own loop
 * takes one job at a time and asks twice more after each: six messages to Redis for a search that comes alone, and here one.
 * Locks, stalled jobs and the ends of jobs are BullMQ's.
 *
 * After each event (a search has ended, a job was added, more searches may run) the worker ends the jobs whose searches have ended
 * and, in the same message, takes as many as wait and may run; the reply says how many wait then. If it expects no other and may run
 * more, that message also waits for BullMQ's marker, which is set with every job that is added, for at most `redisBlockMs`, and then
 * takes a job: Redis runs what follows a blocking command as soon as that ends. A worker that may not run the job any more hands it back.
 */

const takenAtOnceMax = 64;
const retryPauseMs = 1_000;
// The caller has its answer by then, so the end of the job waits and shares a message with the next take.
const endWithinMs = 25;

/** Every worker that had the search died, or lost Redis for longer than the lock of a job lasts. */
export class WorkersLost extends Error {}

export interface JobHandlers {
  /** Runs one search. The job fails if it rejects. `isRepeated`: another worker had it, or this one before. */
  run: (job: SearchJob, options: { isRepeated: boolean; lease: TakenLease | undefined }) => Promise<void>;
  /** Gets a job that failed, or {@link WorkersLost} for one that lost too many workers; without `job` if it is not readable. */
  failed: (error: Error, requestId: string | undefined, job: SearchJob | undefined) => Promise<void>;
}

const wakeOthersScript = Script.endingWork("wakeOthers", new URL("wake-others.lua", import.meta.url));

interface RunningJob extends TakenJob {
  /** Whether it was taken although no slot was free. */
  isOnTop: boolean;
}

type EndedJob = Pick<TakenJob, "job" | "token"> & { failure: Error | undefined };

export class JobLoop {
  readonly #worker: ManualWorker;
  readonly #redis: Redis;
  /** For everything that must not wait for a job: BullMQ's locks, and the ends of jobs while none comes. */
  readonly #commands: Redis;
  /** On which the worker takes jobs and waits for them. */
  readonly #takes: Redis;
  readonly #taking: IQueueBackend;
  readonly #takingOnTop: IQueueBackend;
  readonly #handlers: JobHandlers;
  readonly #warn: (error: unknown) => void;
  readonly #running = new InFlightEntries<RunningJob>();
  readonly #ended: EndedJob[] = [];
  readonly #idle = Promise.withResolvers<void>();
  #concurrency: number;
  #peak = 0;
  #taken = 0;
  #takenAtLastLook = 0;
  /** Jobs that waited when the loop last took some. */
  #waiting = 1;
  #asked = 0;
  #ending = 0;
  #endTimer: NodeJS.Timeout | undefined;
  #isActing = false;
  /** Jobs that it has asked for. */
  #expected = 0;
  /** Messages under way that take jobs. */
  #asking = 0;
  /** Whether it waits for the marker, and can take nothing until that has come. */
  #isWaiting = false;
  #isPaused = false;
  #isStopping = false;
  #whenFull: () => void = () => undefined;

  /**
   * @param options.workerId the name of the worker in its jobs.
   * @param options.concurrency searches at once, until it is set anew.
   */
  constructor(
    { connections, redis, metrics, log }: Pick<Context, "connections" | "redis" | "metrics" | "log">,
    handlers: JobHandlers,
    { workerId, concurrency }: { workerId: string; concurrency: number },
  ) {
    this.#redis = redis;
    this.#handlers = handlers;
    this.#concurrency = concurrency;
    const warn = throttledWarning(log, "worker error");
    this.#warn = (error) => {
      metrics.backgroundErrors.inc({ where: "worker" });
      warn(error);
    };
    this.#commands = connections.openBlocking("worker-queue");
    this.#takes = withLeases(connections.openBlocking("worker-takes"));
    this.#worker = new ManualWorker(this.#commands, workerId);
    this.#taking = this.#worker.backendOn(this.#takes, { byTurn: true });
    this.#takingOnTop = this.#worker.backendOn(this.#takes, { byTurn: false });
    this.#worker.on("error", this.#warn);
    this.#worker.on("stalled", () => this.#look());
  }

  /** Searches that run. */
  get running(): number {
    return this.#running.size;
  }

  /** Searches that run beyond the slots because {@link takeOnTop} took them. */
  get runningOnTop(): number {
    const taken = this.#running.values().filter(({ isOnTop }) => isOnTop).length;
    return Math.max(0, Math.min(taken, this.#running.size - this.#concurrency));
  }

  /** The most searches that ran at once since it was asked last. */
  takePeak(): number {
    const seen = this.#peak;
    this.#peak = this.#running.size;
    return seen;
  }

  /** The jobs that waited in the queue when it last took some. */
  get waiting(): number {
    return Math.max(0, this.#waiting);
  }

  /** For the watchdog: whether jobs wait and it may take some, but has taken none since it was asked last. */
  async leavesJobsWaiting(): Promise<boolean> {
    const hasTakenNone = this.#taken === this.#takenAtLastLook;
    this.#takenAtLastLook = this.#taken;
    const mayTake = this.#takesJobs && this.#running.size < this.#concurrency;
    return hasTakenNone && mayTake && (await readBacklog(this.#redis)).waiting > 0;
  }

  /** Has this called each time a search takes the last slot, or no slot is left because there are fewer now. */
  whenFull(act: () => void): void {
    this.#whenFull = act;
  }

  /** Looks whether a job waits, although no marker says so. */
  #look(): void {
    this.#waiting = Math.max(this.#waiting, 1);
    if (this.#isWaiting) void this.#wakeOne();
    else this.#act();
  }

  /** Sets the marker, which wakes a worker that waits for it. Without it a job waits a second longer. Never rejects. */
  async #wakeOne(): Promise<void> {
    await this.#commands.zadd(queueKeys.marker, 0, "0").catch(() => undefined);
  }

  get #takesJobs(): boolean {
    return !this.#isPaused && !this.#isStopping;
  }

  /** How many jobs it may ask for; negative if it has more than its slots. */
  get #free(): number {
    return this.#takesJobs ? this.#concurrency - this.#running.size - this.#expected : 0;
  }

  /** Whether all slots are taken, and {@link takeOnTop} may take jobs. */
  get mayTakeOnTop(): boolean {
    return this.#takesJobs && !this.#isWaiting && this.#running.size >= this.#concurrency;
  }

  /** Takes no further job until {@link resume}. Searches that run end normally. */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#look();
  }

  /** Sets how many searches may run at once. Those beyond a lower number end normally. */
  setConcurrency(searches: number): void {
    this.#concurrency = searches;
    if (this.#running.size >= searches) this.#whenFull();
    this.#act();
  }

  /**
   * Takes up to so many jobs of those that wait before all turns, although no slot is free.
   * @throws if Redis does not answer, after it has started those that were taken.
   */
  async takeOnTop(jobsMax: number): Promise<void> {
    if (!this.mayTakeOnTop) return;
    this.#expected += jobsMax;
    const asked = Array.from({ length: jobsMax }, () => this.#takeJob(this.#takingOnTop));
    const replies = await Promise.allSettled(asked);
    this.#expected -= jobsMax;
    this.#resolveIfIdle();
    // Searches may have ended meanwhile, whose slots were not free as long as these jobs were expected.
    this.#act();
    throwFirst(replies);
  }

  /** Takes jobs until {@link stop}. @throws if Redis refuses what BullMQ asks at first, as to a user who may not run INFO. */
  async start(): Promise<void> {
    await this.#worker.waitUntilReady();
    await Promise.all([this.#taking.waitUntilReady(), this.#takingOnTop.waitUntilReady()]);
    await this.#worker.startStalledCheckTimer();
    this.#worker.locks.start();
    this.#act();
  }

  /** Takes no further job, finishes what ends in time and hands the rest back, for another worker to start at once. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    if (this.#takes.status !== "ready") this.#takes.disconnect();
    else if (this.#isWaiting) void this.#worker.wake();
    this.#act();
    const { ended } = await waitFor(this.#finish(), { timeoutMs: protocolTimes.jobDrainMs });
    this.#takes.disconnect();
    if (ended !== "done") await this.handBack();
  }

  /** Hands the searches that run to other workers. If this process still decides one of them, it decides the same as they do. */
  async handBack(): Promise<void> {
    await Promise.allSettled(this.#running.values().map((entry) => this.#handBack(entry)));
  }

  async #finish(): Promise<void> {
    this.#resolveIfIdle();
    await this.#idle.promise;
    await this.#worker.close();
  }

  #resolveIfIdle(): void {
    if (this.#isStopping && this.#running.size + this.#ended.length + this.#ending + this.#expected === 0)
      this.#idle.resolve();
  }

  async #handBack({ job, token }: TakenJob): Promise<void> {
    const id = job.id ?? "";
    this.#running.delete(id);
    this.#worker.locks.untrackJob(id);
    await job.moveToWait(token);
    await this.#wakeOne();
  }

  /** Acts at the end of this turn of the event loop, so that what happens in the same turn shares a message. */
  #act(): void {
    if (this.#isActing) return;
    this.#isActing = true;
    setImmediate(() => {
      this.#isActing = false;
      const free = this.#free;
      const jobs = this.#isWaiting ? 0 : Math.max(0, Math.min(free, this.#waiting, takenAtOnceMax));
      const expectsMore = jobs < this.#waiting || (jobs === 0 && this.#asking > 0);
      const waits = free > jobs && !expectsMore && !this.#isWaiting;
      if (jobs > 0 || waits) void this.#ask(this.#exchange(this.#ended.splice(0), jobs, waits));
      else if (!this.#takesJobs) this.#endJobs();
      else if (this.#ended.length > 0) this.#endTimer ??= setTimeout(() => this.#endJobs(), endWithinMs);
    });
  }

  /** Ends the jobs whose searches have ended without taking others. */
  #endJobs(): void {
    clearTimeout(this.#endTimer);
    this.#endTimer = undefined;
    for (const end of this.#ended.splice(0)) void this.#endJob(end).catch(this.#warn);
  }

  async #ask(request: Promise<void>): Promise<void> {
    this.#asking += 1;
    try {
      await request;
    } catch (error) {
      if (!this.#isStopping) this.#warn(error);
      this.#waiting = 1;
      await sleep(retryPauseMs, undefined, { ref: false });
    }
    this.#asking -= 1;
    this.#act();
  }

  /**
   * Ends jobs, takes up to so many and starts their searches. @param waits whether to wait for the marker then, in the same message.
   * @throws if one could not be ended or taken, after it has started the others.
   */
  async #exchange(ended: readonly EndedJob[], jobsMax: number, waits: boolean): Promise<void> {
    this.#waiting -= jobsMax;
    this.#expected += jobsMax;
    this.#isWaiting ||= waits;
    // BullMQ's commands leave within this turn of the event loop, a script at its end, and the wait after both: with one write.
    const { stream } = this.#takes;
    stream.cork();
    const asked: Promise<unknown>[] = ended.map((end, at) => this.#endJob(end, { takesNext: at < jobsMax }));
    // An end that takes the next job costs Redis less than an end and a take.
    for (let at = ended.length; at < jobsMax; at += 1) asked.push(this.#takeJob(this.#taking));
    if (jobsMax > 0) asked.push(this.#countWaiting());
    setImmediate(() => {
      if (waits) void this.#ask(this.#waitAndTake());
      setImmediate(() => stream.uncork());
    });
    const replies = await Promise.allSettled(asked);
    this.#expected -= jobsMax;
    this.#resolveIfIdle();
    throwFirst(replies);
  }

  async #countWaiting(): Promise<void> {
    const { waiting, waitingByTurn, marker } = queueKeys;
    this.#waiting = Number(await wakeOthersScript.run(this.#takes, [waiting, waitingByTurn, marker], []));
  }

  /** Takes one job as soon as there is one, or none after a while. @throws if Redis does not answer. */
  async #waitAndTake(): Promise<void> {
    this.#expected += 1;
    const waited = this.#takes.bzpopmin(queueKeys.marker, this.#worker.ownMarker, protocolTimes.redisBlockMs / 1_000);
    const replies = await Promise.allSettled([waited, this.#takeJob(this.#taking), this.#countWaiting()]);
    this.#expected -= 1;
    this.#isWaiting = false;
    this.#resolveIfIdle();
    throwFirst(replies);
  }

  async #takeJob(from: IQueueBackend): Promise<void> {
    this.#asked += 1;
    const token = `${this.#worker.id}:${this.#asked}`;
    const taken = await this.#worker.jobIn(await from.moveToActive(token, this.#worker.opts.name), token);
    if (!taken) return;
    const isOnTop = from === this.#takingOnTop;
    // It may have been paused meanwhile, or have got fewer slots.
    const mayRun = isOnTop || (this.#takesJobs && this.#running.size < this.#concurrency);
    if (mayRun) return void this.#run({ ...taken, isOnTop });
    await taken.lease?.release();
    await this.#handBack(taken);
  }

  /** Ends a job. @param exchanged absent for one that is ended on its own. */
  async #endJob({ job, token, failure }: EndedJob, exchanged?: { takesNext: boolean }): Promise<void> {
    this.#ending += 1;
    try {
      if (failure) await job.moveToFailed(failure, token, false);
      else if (!exchanged) await job.moveToCompleted("", token, false);
      else await this.#endAndTake(job, token, exchanged.takesNext);
    } finally {
      this.#ending -= 1;
      this.#resolveIfIdle();
    }
  }

  async #endAndTake(job: Job, token: string, takesNext: boolean): Promise<void> {
    const { result } = await this.#taking.moveToCompleted(job, "", keepJobs.removeOnComplete, token, takesNext);
    const taken = await this.#worker.jobIn(result, token);
    if (taken) void this.#run({ ...taken, isOnTop: false });
  }

  /** Never rejects. */
  async #run(running: RunningJob): Promise<void> {
    const { job, token, lease } = running;
    const id = job.id ?? "";
    this.#running.set(id, running);
    this.#taken += 1;
    this.#peak = Math.max(this.#peak, this.#running.size);
    this.#worker.locks.trackJob(id, token, Date.now());
    if (this.#running.size >= this.#concurrency) this.#whenFull();
    const failure = await this.#search(running);
    void lease?.release();
    if (this.#running.get(id) !== running) return; // It was handed back.
    this.#running.delete(id);
    this.#worker.locks.untrackJob(id);
    if (failure) void this.#handlers.failed(failure, job.id, searchJob.safeParse(job.data).data);
    this.#ended.push({ job, token, failure });
    this.#act();
  }

  async #search({ job, lease }: RunningJob): Promise<Error | undefined> {
    // BullMQ gives a job that lost too many workers to a further one, which has to fail it.
    if (job.deferredFailure) return new WorkersLost(job.deferredFailure);
    try {
      await this.#handlers.run(searchJob.parse(job.data), { isRepeated: job.attemptsStarted > 1, lease });
      return undefined;
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }
}

function throwFirst(replies: readonly PromiseSettledResult<unknown>[]): void {
  for (const reply of replies) if (reply.status === "rejected") throw reply.reason;
}
