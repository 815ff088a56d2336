import { atStartOf, caughtBy, inCode, inScript, inSql, type Mutant, testFile } from "./mutant.ts";

const journey = testFile("test/journeys/idempotency.test.ts");
const storedAnswers = testFile("test/shared/credits/stored-answers.test.ts");

/** Bugs of the answers that are stored under Idempotency-Keys. */
export const answerMutants: readonly Mutant[] = [
  ...caughtBy(storedAnswers, {
    "answer-not-stored-with-its-charge": [
      "A charge under a key does not store its answer.",
      inSql("decide_searches", "d.request_id, d.body, d.fingerprint", "d.request_id, null::bytea, d.fingerprint"),
      inSql("charge_alone", "request, sent_body, used_fingerprint", "request, null, used_fingerprint"),
    ],
    "answers-emptied-a-day-early": [
      "Maintenance empties the answers of yesterday.",
      inSql("clear_old_answers", "answer_slot(now() - interval '24 hours'), ", ""),
    ],
  }),
  ...caughtBy(journey, {
    "another-answer-sent-than-stored": [
      "A run whose key another run has paid sends its own answer instead of the stored one.",
      inCode("conclude", "if (stored) return", "if (stored && !job.key) return"),
    ],
    "no-look-for-the-key": [
      "A key that Redis has forgotten is not looked up in Postgres.",
      atStartOf("AdmissionControl.#findPaid", "if (request.requestId) return undefined;"),
    ],
    "record-of-a-key-never-expires": [
      "Redis keeps the record of every key forever.",
      inScript("settle.lua", "redis.call('PEXPIRE', record, ARGV[3])", "redis.call('PERSIST', record)"),
    ],
    "every-refusal-looks-alone": [
      "Each search under a key of an organization without credit costs a query.",
      inCode("PaidAnswers.noteRefusal", "set(organizationId, true)", "delete(organizationId)"),
    ],
  }),
  ...caughtBy(testFile("test/shared/credits/holds.test.ts"), {
    "holds-stay-in-a-full-redis": [
      "Holds cannot end while Redis is out of memory.",
      inCode("Script.endingWork", "script.#flags = allowOutOfMemory", "script.#flags = allowOutOfMemory && ''"),
    ],
  }),
];
