import { caughtBy, inCode, type Mutant, testFile } from "./mutant.ts";

const scopes = testFile("test/api/scopes.test.ts");
const requireToolScope = "requireScope(mcpRequest.caller, tool);";
const inSessionCode = (scope: string) =>
  inCode("Sessions.callerOf", 'caller.scopes.includes("billing")', `caller.scopes.includes(${scope})`);

/** Bugs of the scopes: one entry point does not require its scope. */
export const scopeMutants: readonly Mutant[] = [
  ...caughtBy(scopes, {
    "search-without-scope": [
      "POST /v1/serp/search is open to any valid token.",
      inCode("handleSearch", 'identify(request, response, "search")', 'identify(request, response, "any")'),
    ],
    "usage-without-scope": [
      "GET /v1/usage is open to any valid token.",
      inCode("handleUsage", 'identify(request, response, "usage")', 'identify(request, response, "any")'),
    ],
    "search-tool-without-scope": [
      "The search tool is open to any valid token.",
      inCode("callTool", requireToolScope, `if (tool !== "search") ${requireToolScope}`),
    ],
    "usage-tool-without-scope": [
      "The usage tool is open to any valid token.",
      inCode("callTool", requireToolScope, `if (tool !== "usage") ${requireToolScope}`),
    ],
    "sign-in-without-scope": [
      "A sign-in to the account pages requires another scope than later requests of its session.",
      inSessionCode('response.req.path.endsWith("/sign-in") ? "usage" : "billing"'),
    ],
    "session-without-scope": [
      "The account pages require the scope at sign-in, and not at later requests of the session.",
      inSessionCode('response.req.path.endsWith("/sign-in") ? "billing" : "usage"'),
    ],
  }),
];
