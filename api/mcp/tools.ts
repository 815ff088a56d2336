import type { Tool } from "@modelcontextprotocol/server";
import { z } from "zod";
import { errorBodySchema } from "../../shared/errors.ts";
import { searchRequestBody } from "../../shared/query/query.ts";
import { searchResponseBody } from "../../shared/results.ts";
import { jsonSchemaOf } from "./json-schema.ts";
import { usageResponseBody } from "../read-usage.ts";

/** What the tools are called. The second name of each is for clients that refuse a dot. */
export const toolNames = {
  "serp.search": "search",
  "usage.get": "usage",
  serp_search: "search",
  usage_get: "usage",
} as const;

export type ToolName = keyof typeof toolNames;

export function isToolName(name: string): name is ToolName {
  return Object.hasOwn(toolNames, name);
}

type Definition = Omit<Tool, "name">;

const search: Definition = {
  title: "Search Google",
  inputSchema: objectSchema(searchRequestBody, "input"),
  outputSchema: objectSchema(z.union([searchResponseBody, errorBodySchema]), "output"),
  annotations: {
    title: "Search Google",
    // It spends: a client that asks its user before it acts should ask before this, too.
    readOnlyHint: false,
    destructiveHint: false,
    // Each call is a search of its own, and is charged again.
    idempotentHint: false,
    openWorldHint: true,
  },
};

const usage: Definition = {
  title: "Read the credit balance",
  description:
    "Tells what the organization can still spend, in mils (1000 mils are 1 USD), and its plan. Costs nothing but one " +
    "request of the rate window. Call it before many searches, or after a refusal for credits.",
  inputSchema: objectSchema(z.strictObject({}), "input"),
  outputSchema: objectSchema(z.union([usageResponseBody, errorBodySchema]), "output"),
  annotations: {
    title: "Read the credit balance",
    readOnlyHint: true,
    destructiveHint: false,
    idempotentHint: true,
    openWorldHint: false,
  },
};

/** The list that a caller sees, for whom a search costs so many mils; with `plain`, without the names that have a dot. */
export function listTools({ priceMils, plain }: { priceMils: number; plain: boolean }): Tool[] {
  const priced = { ...search, description: describeSearch(priceMils) };
  return Object.entries(toolNames)
    .filter(([name]) => !plain || !name.includes("."))
    .map(([name, tool]) => ({ name, ...(tool === "search" ? priced : usage) }));
}

function describeSearch(priceMils: number): string {
  return (
    "Searches Google and returns the results page as JSON: every element in rank order, with title, url, description and " +
    "more. Use it for what is current, local, or has to be cited. " +
    `A search costs ${priceMils} mils (1000 mils are 1 USD), whatever its depth, also where nothing is found; a call that ` +
    "ends in an error, or is cancelled, costs nothing. " +
    "Only the keyword is required. Name places with their country, as in `Austin, Texas, United States`. " +
    "A keyword may contain the operators of the engine, such as quotes, `site:` and `-word`. " +
    "Domains that end in `.example` are made up: then this server runs on its sandbox. " +
    "On an error read error.code and error.details, and do what the last text of the result says."
  );
}

/** The JSON Schema of what REST checks with. The root is an object, as the protocol wants, also where it is a choice. */
function objectSchema(schema: z.ZodType, io: "input" | "output"): Tool["inputSchema"] {
  return { ...jsonSchemaOf(schema, io), type: "object" };
}
