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
