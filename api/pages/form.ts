import type { Request } from "express";
import { CallerError } from "../../shared/errors.ts";
import { readBytes } from "../http/read-json.ts";
import { html, type Html } from "./html.ts";

/** What was wrong with the fields of a form, by the field's name. */
export type FieldProblems = Readonly<Record<string, string>>;

/** A form that was sent: what its fields had, and what was wrong with them. Of a form that is shown first, nothing. */
export interface SentForm {
  values: URLSearchParams;
  problems: FieldProblems;
}

export const newForm: SentForm = { values: new URLSearchParams(), problems: {} };

interface TextField {
  name: string;
  label: string;
  hint?: string;
  /** What it has before a person changes it. */
  value?: string;
  attributes?: Html;
}

/** A field for text with its label, its hint, and what was wrong with it. */
export function textField(
  { values, problems }: SentForm,
  { name, label, hint, value = "", attributes }: TextField,
): Html {
  const problem = problems[name];
  const described = [hint !== undefined && `${name}-hint`, problem !== undefined && `${name}-problem`].filter(Boolean);
  return html`<div class="field"><label for="${name}">${label}</label>
${hint !== undefined && html`<p class="aside" id="${name}-hint">${hint}</p>`}
<input id="${name}" name="${name}" value="${values.get(name) ?? value}" autocomplete="off"${attributes}${
    described.length > 0 && html` aria-describedby="${described.join(" ")}"`
  }${problem !== undefined && html` aria-invalid="true"`}>
${problemOf(problems, name)}</div>`;
}

/** What was wrong with a field, to which the field refers by the id `NAME-problem`. */
export function problemOf(problems: FieldProblems, name: string): Html | false {
  const problem = problems[name];
  return problem !== undefined && html`<p class="problem" id="${name}-problem">${problem}</p>`;
}

const amountPattern = /^\$?(\d{1,9}|\d{1,3}(?:,\d{3}){1,2})(?:\.(\d{1,3}))?$/;

/** Reads an amount as people write it, `5`, `7.50`, `$1,000`. @returns mils; undefined for any other text. */
export function parseDollars(text: string): number | undefined {
  const [, whole, decimals = ""] = amountPattern.exec(text.trim()) ?? [];
  if (whole === undefined) return undefined;
  return Number(whole.replaceAll(",", "")) * 1_000 + Number(decimals.padEnd(3, "0"));
}

const formBytesMax = 16 * 1024;

/**
 * Reads the fields of a form from the request body alone. Fields in the address are ignored: addresses are logged, and a
 * token must never be.
 * @throws {CallerError} `bad_request` for another content type, or a body that {@link readBytes} rejects.
 */
export async function readForm(request: Request): Promise<URLSearchParams> {
  const [type = ""] = (request.headers["content-type"] ?? "").split(";");
  if (type.trim().toLowerCase() !== "application/x-www-form-urlencoded")
    throw new CallerError("bad_request", { reason: "content_type_not_form" });
  return new URLSearchParams((await readBytes(request, formBytesMax)).toString("utf8"));
}
