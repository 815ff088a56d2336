import { atStartOf, faults, inCode, inSql, moneyModel, type Mutant, testFile } from "./mutant.ts";

const owed = "select d.request_id, d.organization_id from decided d where d.kind = 'charge' and d.key_hash is null";
const insertOwed = "insert into undelivered (request_id, organization_id) values (request, organization);";

/** Bugs after a charge: in the proof of delivery, the reversal, and the maintenance. */
export const deliveryMutants: readonly Mutant[] = [
  {
    name: "undelivered-row-missing",
    what: "A charge is final at once: no row in `undelivered` says that its answer has not arrived yet.",
    caughtBy: faults("crash-points", "--only", "api:confirm:before, no key, first"),
    edits: [
      inSql("decide_searches", owed, owed.replace("d.key_hash is null", "false")),
      inSql("charge_alone", /insert into undelivered [^;]*;/, ""),
    ],
  },
  {
    name: "keyed-charges-reversible",
    what: "A charge under an Idempotency-Key can be reversed, although its answer is replayed.",
    caughtBy: testFile("test/shared/credits/ledger.test.ts"),
    edits: [
      inSql("decide_searches", owed, owed.replace(" and d.key_hash is null", "")),
      inSql("charge_alone", "insert into answers", `${insertOwed} insert into answers`),
    ],
  },
  {
    name: "reversed-without-evidence",
    what: "A charge can be reversed although its delivery was confirmed, and more than once.",
    caughtBy: moneyModel,
    edits: [
      inSql("one_reversal_per_request", "create unique index", "create index"),
      inSql(
        "reverse_charges",
        /delete from undelivered u .*? returning u\.request_id/,
        "select unnest(request_ids) as request_id",
      ),
    ],
  },
  {
    name: "delivery-never-confirmed",
    what: "The API does not confirm delivered answers.",
    caughtBy: testFile("test/api/mcp/hand-over.test.ts"),
    edits: [inCode("Delivery.begin", "this.#confirm(request)", "undefined")],
  },
  {
    name: "confirmed-before-it-was-sent",
    what: "The charge of an MCP answer is final before the first copy was handed to the socket.",
    caughtBy: testFile("test/api/mcp/hand-over.test.ts"),
    edits: [
      inCode(
        "handOverFirstCopy",
        "if (first && (await socket.handOver(...first))) delivery?.flushed();",
        "if (first) { delivery?.flushed(); await socket.handOver(...first); }",
      ),
    ],
  },
  {
    name: "first-copy-is-free",
    what: "The charge of an MCP answer is final only after both copies, so a caller can read the first for free.",
    caughtBy: testFile("test/api/mcp/hand-over.test.ts"),
    edits: [inCode("splitMessage", "...split,", "first: [...split.first, ...split.rest], rest: [Buffer.alloc(0)],")],
  },
  {
    name: "cancelled-in-delivery",
    what: "A cancellation while the answer is being sent reverses the charge, although the answer arrives.",
    caughtBy: testFile("test/api/mcp/hand-over.test.ts"),
    edits: [
      inCode("McpRequest.cancel", "if (!this.delivery)", ""),
      inCode(
        "Delivery.begin",
        "this.#confirm(request)",
        'disconnected.aborted ? this.#fail(request, "caller_disconnected") : this.#confirm(request)',
      ),
    ],
  },
  {
    name: "unread-answers-without-bound",
    what: "An organization gets more answers regardless of how many bytes it leaves unread.",
    caughtBy: testFile("test/api/unsent-answers.test.ts"),
    edits: [atStartOf("UnsentAnswers.check", "if (organizationId) return;")],
  },
  {
    name: "replays-not-counted",
    what: "Refused and replayed requests are not counted, so they are unlimited.",
    caughtBy: testFile("test/api/refused-requests.test.ts"),
    edits: [atStartOf("RefusedRequests.count", "if (plan.windowSeconds) return;")],
  },
  {
    name: "pipelined-requests-at-once",
    what: "Pipelined requests start before the answers ahead of them were sent, so their responses have no socket yet.",
    caughtBy: testFile("test/api/pipelining.test.ts"),
    edits: [inCode("oneAtATime", "if (hasSocket(response))", "if (hasSocket(response) || !response.closed)")],
  },
  {
    name: "no-reconciler",
    what: "Charges whose delivery was never confirmed are not reversed.",
    caughtBy: faults("crash-points", "--only", "api:confirm:before, no key, first"),
    edits: [atStartOf("reverseUndelivered", "return;")],
  },
  {
    name: "no-sweeper",
    what: "The sweeper finds overdue holds and does not end them.",
    caughtBy: faults("crash-points", "--only", "api:enqueue:before, no key, first"),
    edits: [inCode("sweepHolds", "due.map(", "due.slice(due.length).map(")],
  },
  {
    name: "silent-redis-unnoticed",
    what: "A Redis connection that has gone silent stays open.",
    caughtBy: testFile("test/journeys/vanished-redis.test.ts"),
    edits: [inCode("common", "socketTimeout: protocolTimes.redisSilenceMs,", "")],
  },
  {
    name: "resync-progress-forgotten",
    what: "The progress of a full resync is not stored, so each leader restarts it.",
    caughtBy: testFile("test/worker/resync.test.ts"),
    edits: [inCode("continueResync", /await redis\.set\(progressKey, [^;]*;/, "")],
  },
];
