import { z } from "zod";
import { type Changer, recordAudit } from "../audit/audit.ts";
import { BackgroundWriter } from "../database/background-writer.ts";
import { BatchedLookup } from "../concurrency/batcher.ts";
import { toByteaArray } from "../database/binary-array.ts";
import { type Database, databaseOf, openDatabase } from "../database/pool.ts";
import { rowOf, valueOf } from "../database/row.ts";
import type { Querying } from "../database/transaction.ts";
import { timeOfId } from "../ids.ts";
import { type Log, throttledWarning } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import type { Context } from "../process/context.ts";
import { type Query, querySchema, searchedPart } from "../query/query.ts";
import { result } from "../results.ts";
import { compressAnswer, expandAnswer } from "../compress-answer.ts";

/**
 * Answers that organizations want kept, in Postgres for as many days as their payers chose. The worker hands an answer over once its
 * search is settled. It can be read while its charge stands: once it is delivered, or paid under a key. From then on no charge can be
 * reversed, so no caller reads an answer that was not paid for.
 */

/** With the largest answers they take 64 MB. */
const waitingMax = 256;
const bodyBytesMax = 256 * 1024;
const batchSizeMax = 32;
const lookupsAtOnceMax = 32;
const megabyte = 1024 * 1024;

const keptBody = z.object({
  query: querySchema,
  totalResultsCount: z.number(),
  searchedKeyword: z.string().exactOptional(),
  truncated: z.literal(true).exactOptional(),
  results: z.array(result),
});
/** What a search found, before its target domain, its types and its format. */
type Findings = Omit<z.infer<typeof keptBody>, "query" | "results"> & {
  results: readonly z.infer<typeof result>[];
};

export interface AnswerToKeep {
  requestId: string;
  organizationId: string;
  /** Of the searched part of its query. */
  fingerprint: string;
  fetchedAtMs: number;
  provider: string;
  /** From {@link writeFindings}. */
  body: Buffer;
}

export function writeFindings(query: Query, { results, ...head }: Findings): Buffer {
  return Buffer.from(JSON.stringify({ query: searchedPart(query), ...head, results }));
}

interface KeptAnswer extends Findings {
  requestId: string;
  fetchedAtMs: number;
  provider: string;
}

/** A query of an organization, and how old its answer may be: not from before `sinceMs`, by Redis' clock. */
interface KeptQuery {
  organizationId: string;
  fingerprint: string;
  sinceMs: number;
}

export class KeptAnswers {
  readonly #writer: BackgroundWriter<AnswerToKeep>;
  readonly #lookup: BatchedLookup<KeptQuery, KeptAnswer>;

  /** @param parts.writing a connection that no search waits for. */
  constructor(parts: {
    database: Database;
    writing: Database;
    bytesMax: number;
    metrics: Pick<Metrics, "keptAnswers">;
    log: Log;
  }) {
    const { database, writing, bytesMax, metrics, log } = parts;
    this.#writer = new BackgroundWriter({
      waitingMax,
      sizeMax: batchSizeMax,
      write: (batch) => keepAnswers(writing, batch, bytesMax),
      warn: throttledWarning(log, "answers were not kept at once"),
      count: (outcome, answers) => metrics.keptAnswers.inc({ outcome }, answers),
    });
    this.#lookup = new BatchedLookup({
      sizeMax: lookupsAtOnceMax,
      concurrency: 1,
      nameOf: nameOfQuery,
      read: (queries) => findKeptAnswers(database, queries),
    });
  }

  /** Keeps an answer in the background. Returns once it is compressed, and never rejects. */
  async keep(answer: AnswerToKeep): Promise<void> {
    const body = await compressAnswer(answer.body).catch(() => undefined);
    if (body === undefined || body.length > bodyBytesMax) this.#writer.drop();
    else this.#writer.add({ ...answer, body });
  }

  /** @returns the newest answer that the organization may read; undefined if there is none. @throws if Postgres does not answer. */
  find(query: KeptQuery): Promise<KeptAnswer | undefined> {
    return this.#lookup.find(query);
  }

  close(): Promise<void> {
    return this.#writer.close();
  }
}

/** @returns undefined if KEPT_ANSWERS_DAYS is 0. */
export function openKeptAnswers(
  context: Pick<Context, "config" | "database" | "metrics" | "log" | "shutdown">,
): KeptAnswers | undefined {
  const { config, database, metrics, log, shutdown } = context;
  if (config.KEPT_ANSWERS_DAYS === 0) return undefined;
  const name = "worker-kept-answers";
  const writing = openDatabase({ ...databaseOf(config), name, sizeMax: 1, log, shutdown });
  const kept = new KeptAnswers({ database, writing, bytesMax: config.KEPT_ANSWERS_MB * megabyte, metrics, log });
  shutdown.register("kept answers", () => kept.close());
  return kept;
}

/** Writes a batch; an organization that keeps none has none written. @returns how many are kept by this call. */
export async function keepAnswers(
  database: Database,
  batch: readonly AnswerToKeep[],
  bytesMax: number,
): Promise<number> {
  const { rows } = await database.query({
    name: "keep_answers",
    text: "select keep_answers($1, $2, $3, $4, $5, $6, $7, $8) as kept",
    values: [
      bytesMax,
      batch.map(({ requestId }) => timeOfId(requestId)),
      batch.map(({ requestId }) => requestId),
      batch.map(({ organizationId }) => organizationId),
      batch.map(({ fingerprint }) => fingerprint),
      batch.map(({ fetchedAtMs }) => new Date(fetchedAtMs)),
      batch.map(({ provider }) => provider),
      toByteaArray(batch.map(({ body }) => body)),
    ],
  });
  return valueOf(z.number(), rows[0]);
}

const nameOfQuery = ({ organizationId, fingerprint, sinceMs }: KeptQuery) =>
  `${organizationId} ${fingerprint} ${sinceMs}`;

const answerFields = { requestId: z.string(), fetchedAt: z.date(), provider: z.string(), body: z.instanceof(Buffer) };
const foundRow = rowOf({ place: z.number(), ...answerFields });

async function findKeptAnswers(
  database: Database,
  queries: readonly KeptQuery[],
): Promise<Map<string, Promise<KeptAnswer>>> {
  const { rows } = await database.query({
    name: "find_kept_answers",
    text: "select * from find_kept_answers($1, $2, $3)",
    values: [
      queries.map(({ organizationId }) => organizationId),
      queries.map(({ fingerprint }) => fingerprint),
      queries.map(({ sinceMs }) => new Date(sinceMs)),
    ],
  });
  const found = rows.map((row) => foundRow.parse(row));
  return new Map(
    found.flatMap(({ place, ...read }) => {
      const query = queries[place - 1];
      return query ? [[nameOfQuery(query), readAnswer(read)] as const] : [];
    }),
  );
}

type StoredRow = Omit<z.infer<typeof foundRow>, "place">;

async function readAnswer({ body, fetchedAt, ...row }: StoredRow): Promise<KeptAnswer & { query: Query }> {
  const findings = keptBody.parse(JSON.parse((await expandAnswer(body)).toString()));
  return { ...row, ...findings, fetchedAtMs: fetchedAt.getTime() };
}

const answerRow = rowOf(answerFields);

/** Reads the answer of a search, if its organization may read it. */
export async function readKeptAnswer(database: Database, organizationId: string, requestId: string) {
  const { rows } = await database.query(
    `select request_id, fetched_at, provider, body from readable_answers
     where organization_id = $1 and at = $2 and request_id = $3`,
    [organizationId, timeOfId(requestId), requestId],
  );
  return rows[0] && readAnswer(answerRow.parse(rows[0]));
}

/**
 * Deletes answers that are kept for longer than their organization or the operator wants: of the organizations from `since` on, at
 * most `rowsMax` or those of one day more, looking at `countsMax` days of organizations.
 * @returns the organization from which the next page goes on; empty after the last one.
 */
export async function clearKeptAnswers(
  database: Database,
  daysMax: number,
  { since, countsMax, rowsMax }: { since: string; countsMax: number; rowsMax: number },
): Promise<string> {
  const values = [daysMax, since, countsMax, rowsMax];
  const { rows } = await database.query("select clear_kept_answers($1, $2, $3, $4) as next", values);
  return valueOf(z.string().nullable(), rows[0]) ?? "";
}

/** For how many days an organization wants its answers kept. @returns undefined if it does not exist. */
export async function readKeptDays(database: Querying, organizationId: string): Promise<number | undefined> {
  const values = [organizationId];
  const { rows } = await database.query("select kept_answer_days as days from organizations where id = $1", values);
  return rows[0] && valueOf(z.number(), rows[0]);
}

/** Sets for how many days an organization wants its answers kept; 0 for not at all. Existing ones are deleted within minutes. */
export async function setKeptDays(transaction: Querying, changer: Changer, days: number): Promise<void> {
  const { rows } = await transaction.query(
    `with old as (select id, kept_answer_days from organizations where id = $1 for no key update)
     update organizations o set kept_answer_days = $2 from old where o.id = old.id returning old.kept_answer_days as days`,
    [changer.organizationId, days],
  );
  const before = { days: valueOf(z.number(), rows[0]) };
  await recordAudit(transaction, { ...changer, action: "kept_answers.set", before, after: { days } });
}
