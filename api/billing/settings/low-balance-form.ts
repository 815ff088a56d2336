import { changeThreshold } from "../../../shared/webhooks/recorded-changes.ts";
import { parseDollars } from "../../pages/parse-dollars.ts";
import type { FormRequest } from "../frame/account-handlers.ts";
import { changeAccount } from "../frame/account-change.ts";
import { answerForm, leadBack, type SettingsParts } from "./settings.ts";

const problem = "Expected an amount above zero with at most three decimals, such as 5 or 7.50, or nothing.";

/** POST /billing/settings/low-balance: sets the threshold, or removes it with an empty field. */
export function handleLowBalanceForm(parts: SettingsParts) {
  return async (asked: FormRequest): Promise<void> => {
    const text = (asked.form.get("dollars") ?? "").trim();
    const mils = text === "" ? null : parseDollars(text);
    if (mils === undefined || mils === 0)
      return answerForm(parts, asked, { status: 400, lowBalance: { text, problem } });
    await changeAccount(parts.database, asked, (transaction, changer) => changeThreshold(transaction, changer, mils));
    leadBack(asked, "threshold");
  };
}
