import { changeLimitsRecorded } from "../../../shared/organizations/recorded-changes.ts";
import type { FormRequest } from "../frame/account-handlers.ts";
import { changeAccount } from "../frame/account-change.ts";
import { readLimitFields } from "./limit-fields.ts";
import { answerForm, leadBack, type SettingsParts } from "./settings.ts";

/** POST /billing/settings/limits: the limits of the organization; an empty field removes one. */
export function handleLimitsForm(parts: SettingsParts) {
  return async (asked: FormRequest): Promise<void> => {
    const { change, problems } = readLimitFields(asked.form);
    if (Object.keys(problems).length > 0)
      return answerForm(parts, asked, { status: 400, limits: { values: asked.form, problems } });
    const owner = { owner: "organization", id: asked.caller.organizationId } as const;
    await changeAccount(parts.database, asked, (transaction, changer) =>
      changeLimitsRecorded(transaction, changer, owner, change),
    );
    await parts.announce();
    leadBack(asked, "limits");
  };
}
