import { inCode, type Mutant, testFile } from "./mutant.ts";

const caughtBy = testFile("test/api/scopes.test.ts");
const requireToolScope = "requireScope(mcpRequest.caller, tool);";
const inSessionCode = (scope: string) =>
  inCode("Sessions.callerOf", 'caller.scopes.includes("billing")', `caller.scopes.includes(${scope})`);

/** Bugs of the scopes: one entry point does not require its scope. */
export const scopeMutants: readonly Mutant[] = [
  {
    name: "search-without-scope",
    what: "POST /v1/serp/search is open to any valid token.",
    caughtBy,
    edits: [inCode("handleSearch", 'identify(request, response, "search")', 'identify(request, response, "any")')],
  },
  {
    name: "usage-without-scope",
    what: "GET /v1/usage is open to any valid token.",
    caughtBy,
    edits: [inCode("handleUsage", 'identify(request, response, "usage")', 'identify(request, response, "any")')],
  },
  {
    name: "search-tool-without-scope",
    what: "The search tool is open to any valid token.",
    caughtBy,
    edits: [inCode("callTool", requireToolScope, `if (tool !== "search") ${requireToolScope}`)],
  },
  {
    name: "usage-tool-without-scope",
    what: "The usage tool is open to any valid token.",
    caughtBy,
    edits: [inCode("callTool", requireToolScope, `if (tool !== "usage") ${requireToolScope}`)],
  },
  {
    name: "sign-in-without-scope",
    what: "A sign-in to the billing page requires another scope than later requests of its session.",
    caughtBy,
    edits: [inSessionCode('response.req.path.endsWith("/sign-in") ? "usage" : "billing"')],
  },
  {
    name: "session-without-scope",
    what: "The billing page requires the scope at sign-in, and not at later requests of the session.",
    caughtBy,
    edits: [inSessionCode('response.req.path.endsWith("/sign-in") ? "billing" : "usage"')],
  },
];
