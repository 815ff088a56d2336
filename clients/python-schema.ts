import { clientSchemas, pick, type Schema } from "./client-schemas.ts";

/** Makes the types of `clients/python/src/serpmill/schema.py` from the schemas of the API's document. */

const heading = `"""Generated from the OpenAPI document by \`npm run clients\`."""

from __future__ import annotations

from typing import Literal, TypedDict
`;

// What the client sends and returns.
const roots = [
  "SearchRequest",
  "CompactSearchRequest",
  "SiteLink",
  "Result",
  "Query",
  "SearchAnswer",
  "CompactQuery",
  "CompactResult",
  "CompactSearchAnswer",
  "Usage",
];

const scalars: Record<string, string> = { string: "str", integer: "int", number: "float", boolean: "bool" };

/** The text of the file. A field that may be missing is in the class without `total`. */
export function schemaOfPythonClient(): string {
  const schemas = clientSchemas();
  const { SearchRequest = {} } = schemas;
  const named = {
    ...schemas,
    // The request decides about the type of its answer.
    SearchRequest: withFormat(SearchRequest, { const: "full" }, []),
    CompactSearchRequest: withFormat(SearchRequest, { const: "compact" }, ["format"]),
  };
  const classes: string[] = [];
  for (const [name, one] of Object.entries(pick(named, roots))) addClass(classes, named, name, one);
  for (const [name, { properties = {} }] of Object.entries(schemas)) {
    const { code, details = {} } = properties;
    if (code && Object.keys(details.properties ?? {}).length > 0) addClass(classes, named, `${name}Details`, details);
  }
  return [heading, ...classes].join("\n");
}

const withFormat = ({ properties, required = [] }: Schema, format: Schema, always: string[]): Schema => ({
  properties: { ...properties, format },
  required: [...required, ...always],
});

function addClass(classes: string[], schemas: Record<string, Schema>, name: string, { properties, required }: Schema) {
  const fields = Object.entries(properties ?? {}).map(([field, type]) => ({
    line: `    ${field}: ${typeOf(classes, schemas, name + field[0]?.toUpperCase() + field.slice(1), type)}`,
    isRequired: required?.includes(field) ?? false,
  }));
  const linesOf = (isRequired: boolean) =>
    fields.filter((one) => one.isRequired === isRequired).map(({ line }) => line);
  const [always, sometimes] = [linesOf(true), linesOf(false)];
  const isSplit = always.length > 0 && sometimes.length > 0;
  const whole = sometimes.length > 0 ? "(TypedDict, total=False)" : "(TypedDict)";
  if (isSplit) classes.push(`\nclass _${name}Always(TypedDict):`, ...always, "");
  classes.push(`\nclass ${name}${isSplit ? `(_${name}Always, total=False)` : whole}:`);
  classes.push(...(isSplit ? sometimes : [...always, ...sometimes]), "");
}

function typeOf(classes: string[], schemas: Record<string, Schema>, name: string, type: Schema): string {
  if (type.$ref !== undefined) {
    const target = type.$ref.split("/").at(-1) ?? "";
    const known = roots.find((root) => root === target);
    return known ?? typeOf(classes, schemas, name, schemas[target] ?? {});
  }
  if (type.enum) return `Literal[${type.enum.map((value) => JSON.stringify(value)).join(", ")}]`;
  if (type.const !== undefined) return `Literal[${type.const === true ? "True" : JSON.stringify(type.const)}]`;
  if (type.type === "array") return `list[${typeOf(classes, schemas, name, type.items ?? {})}]`;
  if (type.type === "object") {
    addClass(classes, schemas, name, type);
    return name;
  }
  return scalars[type.type ?? ""] ?? "object";
}
