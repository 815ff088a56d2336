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

interface Labels {
  name: string;
  label: string;
  hint?: string;
}

/** A field with its label, its hint, and what is wrong with it. @param control writes it, with the attributes that refer to these. */
function labelled({ problems }: SentForm, { name, label, hint }: Labels, control: (attributes: Html) => Html): Html {
  const isWrong = problems[name] !== undefined;
  const describing = [hint && `${name}-hint`, isWrong && `${name}-problem`].filter(Boolean).join(" ");
  const state = html`${describing && html` aria-describedby="${describing}"`}${isWrong && html` aria-invalid="true"`}`;
  return html`<div class="field"><label for="${name}">${label}</label>
${hint !== undefined && html`<p class="aside" id="${name}-hint">${hint}</p>`}
${control(state)}
${problemOf(problems, name)}</div>`;
}

interface TextField extends Labels {
  /** Its value before a person changes it. */
  value?: string | undefined;
  attributes?: Html;
}

/** A text field. */
export function textField(sent: SentForm, field: TextField): Html {
  const { name, value = "", attributes } = field;
  const own = html` id="${name}" name="${name}" value="${sent.values.get(name) ?? value}" autocomplete="off"`;
  return labelled(sent, field, (state) => html`<input${own}${attributes}${state}>`);
}

export type Option = readonly [value: string, label: string];

/** The options of a `select`. */
export const optionList = (options: readonly Option[], chosen: string | undefined): Html =>
  html`${options.map(([value, label]) => html`<option value="${value}"${value === chosen && html` selected`}>${label}</option>`)}`;

/** A choice of one option. @param field.value the option that is chosen before a person chooses. */
export function selectField(
  sent: SentForm,
  field: Labels & { options: readonly Option[]; value: string | undefined },
): Html {
  const { name, options, value } = field;
  const list = optionList(options, sent.values.get(name) ?? value);
  return labelled(sent, field, (state) => html`<select id="${name}" name="${name}"${state}>${list}</select>`);
}

interface DollarsField extends Labels {
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
