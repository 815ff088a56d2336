import { expect, test } from "vitest";
import { places, sources } from "../harness/assertions/sources.ts";

/** Plain technical English: the actor is named, and the field's word is used. */

const unwanted: [words: RegExp, better: string][] = [
  [/\b(nobody|somebody|whoever|anybody|everybody)\b/i, "name the actor: the worker, the API, the caller"],
  [/\b(is|are|was|were) told\b|\bheard of\b/i, "returns, logs, reports, sends"],
  [/\bwhat came of\b|\bof which nothing\b/i, "the result"],
  [/\bin vain\b/i, "without success, or what happened"],
  [/\bfor good\b|\bmerely\b|\bas well as may be\b/i, "permanently, only, or nothing"],
];

/** Files that still have such words. The list only ever gets shorter: do not add to it. */
const unfinished = new Set([
  "docs/operating/configuration.md",
  "shared/config.ts",
  "shared/credits/holds.ts",
  "shared/credits/settle.lua",
  "shared/database/migrate.ts",
  "shared/local/postgres-install.ts",
  "shared/metrics.ts",
  "test/api/bad-inputs-content.test.ts",
  "test/api/bad-inputs-identity.test.ts",
  "test/api/bad-inputs-routing.test.ts",
  "test/api/bad-inputs-transport.test.ts",
  "test/api/billing/account-page.test.ts",
  "test/api/billing/browser.test.ts",
  "test/api/billing/live-updates.test.ts",
  "test/api/billing/page-security.test.ts",
  "test/api/billing/sessions.test.ts",
  "test/api/billing/top-up.test.ts",
  "test/api/check-order.test.ts",
  "test/api/docs/document.test.ts",
  "test/api/docs/spectral-ruleset.ts",
  "test/api/errors.test.ts",
  "test/api/identity.test.ts",
  "test/api/mcp/delivery.test.ts",
  "test/api/mcp/refusals.test.ts",
  "test/api/mcp/tools.test.ts",
  "test/api/outages.test.ts",
  "test/api/slow-readers.test.ts",
  "test/docs/pages.test.ts",
  "test/faults/report.ts",
  "test/harness/processes/google-engine.ts",
  "test/model/api-gate.ts",
  "test/model/api-states.ts",
  "test/model/api.ts",
  "test/model/bugs.ts",
  "test/model/design.ts",
  "test/model/eager.ts",
  "test/model/faults.ts",
  "test/model/invariants.ts",
  "test/model/known-states.ts",
  "test/model/maintenance.ts",
  "test/model/model.test.ts",
  "test/model/model.ts",
  "test/model/redis.ts",
  "test/model/steps.ts",
  "test/model/worker.ts",
  "test/shared/admin/ledger-verify.test.ts",
  "test/shared/admin/providers-check.test.ts",
  "test/shared/config.test.ts",
  "test/shared/credits/holds.test.ts",
  "test/shared/credits/ledger.test.ts",
  "test/shared/credits/model/ledger-calls.ts",
  "test/shared/credits/model/money-model.ts",
  "test/shared/credits/model/money.ts",
  "test/shared/credits/topup.test.ts",
  "test/shared/metrics.test.ts",
  "test/shared/process/ops-server.test.ts",
  "test/shared/providers/health-check.test.ts",
  "worker/engine/flight-leases.ts",
]);

// Recordings are as they came, and a migration that has run is never edited.
const untouched = /^(test\/tidy\/|test\/harness\/fixtures\/|shared\/database\/migrations\/)/;
const written = sources("{api,worker,shared,test,docs}/**/*", "*.{md,yml}", ".env.example").filter(
  ({ path }) => /\.(ts|lua|md|js|css|html|yml|example)$/.test(path) && !untouched.test(path) && !unfinished.has(path),
);

test.each(unwanted)("code, comments and docs have no %s", (words, better) => {
  expect({ found: places(written, words, ({ lines }) => lines), better }).toEqual({ found: [], better });
});
