import { atStartOf, inCode, inScript, inSql, type Mutant, testFile } from "./mutant.ts";

const journey = testFile("test/journeys/idempotency.test.ts");
const storedAnswers = testFile("test/shared/credits/stored-answers.test.ts");

/** Bugs of the answers that are stored under Idempotency-Keys. */
export const answerMutants: readonly Mutant[] = [
  {
    name: "answer-not-stored-with-its-charge",
    what: "A charge under a key does not store its answer.",
    caughtBy: storedAnswers,
    edits: [
      inSql("decide_searches", "d.request_id, d.body, d.fingerprint", "d.request_id, null::bytea, d.fingerprint"),
      inSql("charge_alone", "request, sent_body, used_fingerprint", "request, null, used_fingerprint"),
    ],
  },
  {
    name: "another-answer-sent-than-stored",
    what: "A run whose key another run has paid sends its own answer instead of the stored one.",
    caughtBy: journey,
    edits: [inCode("conclude", "if (stored) return", "if (stored && !job.key) return")],
  },
  {
    name: "no-look-for-the-key",
    what: "A key that Redis has forgotten is not looked up in Postgres.",
    caughtBy: journey,
    edits: [atStartOf("AdmissionControl.#findPaid", "if (request.requestId) return undefined;")],
  },
  {
    name: "record-of-a-key-never-expires",
    what: "Redis keeps the record of every key forever.",
    caughtBy: journey,
    edits: [inScript("settle.lua", "redis.call('PEXPIRE', record, ARGV[3])", "redis.call('PERSIST', record)")],
  },
  {
    name: "every-refusal-looks-alone",
    what: "Each search under a key of an organization without credit costs a query.",
    caughtBy: journey,
    edits: [inCode("PaidAnswers.noteRefusal", "set(organizationId, true)", "delete(organizationId)")],
  },
  {
    name: "answers-emptied-a-day-early",
    what: "Maintenance empties the answers of yesterday.",
    caughtBy: storedAnswers,
    edits: [inSql("clear_old_answers", "answer_slot(now() - interval '24 hours'), ", "")],
  },
  {
    name: "holds-stay-in-a-full-redis",
    what: "Holds cannot end while Redis is out of memory.",
    caughtBy: testFile("test/shared/credits/holds.test.ts"),
    edits: [inCode("Script.endingWork", "script.#flags = allowOutOfMemory", "script.#flags = allowOutOfMemory && ''")],
  },
];
