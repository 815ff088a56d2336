import { atStartOf, caughtBy, faults, inCode, inSql, moneyModel, type Mutant, testFile } from "./mutant.ts";

const owed = "select d.request_id, d.organization_id from decided d where d.kind = 'charge' and d.key_hash is null";
const insertOwed = "insert into undelivered (request_id, organization_id) values (request, organization);";

/** Bugs after a charge: in the proof of delivery, the reversal, and the maintenance. */
export const deliveryMutants: readonly Mutant[] = [
  ...caughtBy(faults("crash-points", "--only", "api:confirm:before, no key, first"), {
    "undelivered-row-missing": [
      "A charge is final at once: no row in `undelivered` says that its answer has not arrived yet.",
      inSql("decide_searches", owed, owed.replace("d.key_hash is null", "false")),
      inSql("charge_alone", /insert into undelivered [^;]*;/, ""),
    ],
    "no-reconciler": [
      "Charges whose delivery was never confirmed are not reversed.",
      atStartOf("reverseUndelivered", "return;"),
    ],
  }),
  ...caughtBy(testFile("test/shared/credits/ledger.test.ts"), {
    "keyed-charges-reversible": [
      "A charge under an Idempotency-Key can be reversed, although its answer is replayed.",
      inSql("decide_searches", owed, owed.replace(" and d.key_hash is null", "")),
      inSql("charge_alone", "insert into answers", `${insertOwed} insert into answers`),
    ],
  }),
  ...caughtBy(moneyModel, {
    "reversed-without-evidence": [
      "A charge can be reversed although its delivery was confirmed, and more than once.",
      inSql("one_reversal_per_request", "create unique index", "create index"),
      inSql(
        "reverse_charges",
        /delete from undelivered u .*? returning u\.request_id/,
        "select unnest(request_ids) as request_id",
      ),
    ],
  }),
  ...caughtBy(testFile("test/api/mcp/hand-over.test.ts"), {
    "delivery-never-confirmed": [
      "The API does not confirm delivered answers.",
      inCode("Delivery.begin", "this.#confirm(request)", "undefined"),
    ],
    "confirmed-before-it-was-sent": [
      "The charge of an MCP answer is final before the first copy was handed to the socket.",
      inCode(
        "handOverFirstCopy",
        "if (first && (await socket.handOver(...first))) delivery?.flushed();",
        "if (first) { delivery?.flushed(); await socket.handOver(...first); }",
      ),
    ],
    "first-copy-is-free": [
      "The charge of an MCP answer is final only after both copies, so a caller can read the first for free.",
      inCode("splitMessage", "...split,", "first: [...split.first, ...split.rest], rest: [Buffer.alloc(0)],"),
    ],
    "cancelled-in-delivery": [
      "A cancellation while the answer is being sent reverses the charge, although the answer arrives.",
      inCode("McpRequest.cancel", "if (!this.delivery)", ""),
      inCode(
        "Delivery.begin",
        "this.#confirm(request)",
        'disconnected.aborted ? this.#fail(request, "caller_disconnected") : this.#confirm(request)',
      ),
    ],
  }),
  ...caughtBy(testFile("test/api/unsent-answers.test.ts"), {
    "unread-answers-without-bound": [
      "An organization gets more answers regardless of how many bytes it leaves unread.",
      atStartOf("UnsentAnswers.check", "if (organizationId) return;"),
    ],
  }),
  ...caughtBy(testFile("test/api/refused-requests.test.ts"), {
    "replays-not-counted": [
      "Refused and replayed requests are not counted, so they are unlimited.",
      atStartOf("RefusedRequests.count", "if (plan.windowSeconds) return;"),
    ],
  }),
  ...caughtBy(testFile("test/api/pipelining.test.ts"), {
    "pipelined-requests-at-once": [
      "Pipelined requests start before the answers ahead of them were sent, so their responses have no socket yet.",
      inCode("oneAtATime", "if (hasSocket(response))", "if (hasSocket(response) || !response.closed)"),
    ],
  }),
  ...caughtBy(faults("crash-points", "--only", "api:enqueue:before, no key, first"), {
    "no-sweeper": [
      "The sweeper finds overdue holds and does not end them.",
      inCode("sweepHolds", "due.map(", "due.slice(due.length).map("),
    ],
  }),
  ...caughtBy(testFile("test/journeys/vanished-redis.test.ts"), {
    "silent-redis-unnoticed": [
      "A Redis connection that has gone silent stays open.",
      inCode("common", "socketTimeout: protocolTimes.redisSilenceMs,", ""),
    ],
  }),
  ...caughtBy(testFile("test/worker/maintenance.test.ts"), {
    "restart-not-resynced": [
      "A leader whose connection to Redis was opened anew does not store the balances again.",
      inCode("startMaintenance", 'redis.on("ready", () => resync.beginAnew());', ""),
    ],
  }),
];
