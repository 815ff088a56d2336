import type { Request, Response } from "express";
import { z } from "zod";
import { CallerError } from "../../shared/errors.ts";
import { readJson } from "../http/read-json.ts";
import { rejectBatch, rejectUnreadable } from "./rejections.ts";

/** Reads the body as JSON, within the same limits as REST. @returns undefined if it was rejected and answered. */
export async function readMessage(request: Request, response: Response): Promise<unknown> {
  try {
    const message = await readJson(request);
    if (!Array.isArray(message)) return message;
    rejectBatch(request, response);
  } catch (error) {
    if (!(error instanceof CallerError)) throw error;
    rejectUnreadable(request, response, error);
  }
  return undefined;
}

const methodMessage = z.object({ method: z.string().regex(/^[a-z]{1,20}(\/[a-z_]{1,20}){0,2}$/i) });

/** A message's method for the log. Anything that does not look like a method is `other`: the caller's text is not logged. */
export function methodOf(message: unknown): string {
  return methodMessage.safeParse(message).data?.method ?? "other";
}
