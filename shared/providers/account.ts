import { z } from "zod";
import type { Account } from "./provider.ts";

/** What no account has, and none owes: a number beyond is a slip. */
const balanceMax = 1_000_000_000;

/** What an account has left, as a provider tells it. */
export const balanceSchema = z.number().min(-balanceMax).max(balanceMax);

/** As operators read it, money to the cent: `2,492 credits`, `12.34 USD`. */
export function toAccount(left: number, unit: "credits" | "searches left" | "USD"): Account {
  const digits = unit === "USD" ? 2 : 0;
  const figure = left.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return { balance: `${figure} ${unit}`, isSpent: left <= 0 };
}
