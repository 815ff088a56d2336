import { isUtf8 } from "node:buffer";
import type { Request } from "express";
import { CallerError } from "../../shared/errors.ts";
import { isEncodedUtf8 } from "../http/encoded-utf8.ts";
import { readBytes } from "../http/read-json.ts";
import { dollars } from "./format.ts";
import { html, type Html } from "./html.ts";

/** What is wrong with the fields of a form, by the field's name. */
export type FieldProblems = Readonly<Record<string, string>>;

export interface SentForm {
  values: URLSearchParams;
  problems: FieldProblems;
}

/** A form that is shown for the first time. */
export const newForm: SentForm = { values: new URLSearchParams(), problems: {} };

interface TextField {
  name: string;
  label: string;
  hint: string;
  /** Its value before a person changes it. */
  value?: string | undefined;
  attributes?: Html;
}

/** A text field with its label, its hint, and what is wrong with it. */
export function textField({ values, problems }: SentForm, field: TextField): Html {
  const { name, label, hint, value = "", attributes } = field;
  const isWrong = problems[name] !== undefined;
  return html`<div class="field"><label for="${name}">${label}</label>
<p class="aside" id="${name}-hint">${hint}</p>
<input id="${name}" name="${name}" value="${values.get(name) ?? value}" autocomplete="off"${attributes} aria-describedby="${name}-hint${isWrong && ` ${name}-problem`}"${isWrong && html` aria-invalid="true"`}>
${problemOf(problems, name)}</div>`;
}

interface DollarsField extends Pick<TextField, "name" | "label" | "hint"> {
  /** Its amount before a person changes it; none for an empty field. */
  mils: number | null | undefined;
  isRequired?: boolean;
}

/** A text field for an amount in dollars. */
export function dollarsField(sent: SentForm, { mils, isRequired = false, ...field }: DollarsField): Html {
  const value = dollarsText(mils);
  const attributes = html` inputmode="decimal" size="12"${isRequired && html` required`}`;
  return textField(sent, { ...field, value, attributes });
}

/**
 * What a {@link dollarsField} shows before a person changes it: `5.00`, `0.505`. It has three decimals only if they are needed,
 * and no comma: in much of the world `5.000` and `5,000` mean each other.
 */
export const dollarsText = (mils: DollarsField["mils"]) =>
  mils === null || mils === undefined ? "" : dollars(mils).slice(1).replaceAll(",", "").replace(/0$/, "");

/** What is wrong with a field. The field refers to it by the id `NAME-problem`. */
export function problemOf(problems: FieldProblems, name: string): Html | false {
  const problem = problems[name];
  return problem !== undefined && html`<p class="problem" id="${name}-problem">${problem}</p>`;
}

/** The end of the message about an amount that {@link parseDollars} does not read. */
export const amountRule = "Write 1000 without a comma, and at most three decimals after a point.";

const amountPattern = /^\$?(\d{1,9})(?:\.(\d{1,3}))?$/;

/**
 * Reads an amount as people write it: `5`, `7.50`, `$1000`. It refuses every comma, because `0,505` may be meant as decimals.
 * @returns mils; undefined for any other text.
 */
export function parseDollars(text: string): number | undefined {
  const [, whole, decimals = ""] = amountPattern.exec(text.trim()) ?? [];
  if (whole === undefined) return undefined;
  return Number(whole) * 1_000 + Number(decimals.padEnd(3, "0"));
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
  const bytes = await readBytes(request, formBytesMax);
  const text = bytes.toString();
  if (!isUtf8(bytes) || !isEncodedUtf8(text)) throw new CallerError("bad_request", { reason: "body_not_utf8" });
  return new URLSearchParams(text);
}
