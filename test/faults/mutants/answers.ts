import { atStart, inCode, inScript, inSql, type Mutant, replace, testFile } from "./mutant.ts";

const journey = testFile("test/journeys/idempotency.test.ts");
const storedAnswers = testFile("test/shared/credits/stored-answers.test.ts");

/** Defects of the answers that are kept under Idempotency-Keys. */
export const answerMutants: readonly Mutant[] = [
  {
    name: "answer-not-stored-with-its-charge",
    what: "A charge under a key does not store its answer.",
    caughtBy: storedAnswers,
    edits: [
      inSql(
        "decide_searches",
        replace("d.request_id, d.body, d.fingerprint", "d.request_id, null::bytea, d.fingerprint"),
      ),
      inSql("charge_alone", replace("request, sent_body, used_fingerprint", "request, null, used_fingerprint")),
    ],
  },
  {
    name: "another-answer-sent-than-stored",
    what: "A run whose key was paid by another sends its own answer, and not the stored one.",
    caughtBy: journey,
    edits: [inCode("conclude", replace("if (stored) return", "if (stored && !job.key) return"))],
  },
  {
    name: "no-look-for-the-key",
    what: "A search whose key Redis has forgotten is not looked for in Postgres.",
    caughtBy: journey,
    edits: [inCode("AdmissionControl.#findPaid", atStart("if (request.requestId) return undefined;"))],
  },
  {
    name: "record-of-a-key-never-expires",
    what: "Redis keeps the record of every key for ever.",
    caughtBy: journey,
    edits: [inScript("settle.lua", replace("redis.call('PEXPIRE', record, ARGV[3])", "redis.call('PERSIST', record)"))],
  },
  {
    name: "every-refusal-looks-alone",
    what: "Searches under keys of an organization without credit cost a query each.",
    caughtBy: journey,
    edits: [inCode("PaidAnswers.noteRefusal", replace("set(organizationId, true)", "delete(organizationId)"))],
  },
  {
    name: "answers-emptied-a-day-early",
    what: "Maintenance empties the answers of yesterday.",
    caughtBy: storedAnswers,
    edits: [inSql("clear_old_answers", replace("interval '2 days'", "interval '1 day'"))],
  },
  {
    name: "holds-stay-in-a-full-redis",
    what: "A Redis that is out of memory refuses to end holds.",
    caughtBy: testFile("test/shared/credits/key-records.test.ts"),
    edits: [
      inCode(
        "Script.endingWork",
        replace("script.#flags = allowOutOfMemory", "script.#flags = allowOutOfMemory && ''"),
      ),
    ],
  },
];
