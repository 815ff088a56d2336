import { z } from "zod";
import type { Account } from "./provider.ts";

/** No account holds or owes more: a larger number is an error at the provider. */
const balanceMax = 1_000_000_000;

/** The remaining balance that a provider reports, in its own unit. */
export const balanceSchema = z.number().min(-balanceMax).max(balanceMax);

/** The remaining balance as operators read it, money to the cent: `2,492 credits`, `12.34 USD`. */
export function toAccount(remaining: number, unit: "credits" | "searches left" | "USD"): Account {
  const digits = unit === "USD" ? 2 : 0;
  const amount = remaining.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return { balance: `${amount} ${unit}`, isSpent: remaining <= 0 };
}
