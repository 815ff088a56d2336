import { beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { readLanguage } from "../../../shared/query/languages.ts";
import { readLocation } from "../../../shared/query/locations.ts";
import { forgetSignIns, PageVisitor, signIn } from "../../harness/clients/page-visitor.ts";
import { usualService } from "../../harness/processes/usual-stack.ts";

/** What the fields of the playground suggest. */

const service = await usualService();
beforeEach(() => forgetSignIns(service));

const suggested = z.array(z.strictObject({ value: z.string(), label: z.string().optional() }));

const suggest = async (person: PageVisitor, field: string, text: string) =>
  suggested
    .parse((await person.get(`/playground/suggestions/${field}?text=${encodeURIComponent(text)}`)).body)
    .map(({ value }) => value);

test("a place is suggested with its country by the beginning of its name, the largest first, as the service reads it", async () => {
  const person = await signIn(service, await service.organization());
  expect((await suggest(person, "location", "chic"))[0]).toBe("Chicago, Illinois, United States");
  expect((await suggest(person, "location", "NEW YO"))[0]).toBe("New York, New York, United States");
  expect(await suggest(person, "location", "sao pau")).toEqual(["São Paulo, Brazil"]);
  expect((await suggest(person, "location", "Paris, t"))[0]).toBe("Paris, Texas, United States");
  expect(await suggest(person, "location", "deutschl")).toEqual(["Germany"]);
  for (const text of ["a", "s", "m", "al ", "saint"])
    for (const place of await suggest(person, "location", text)) expect(readLocation(place)).toHaveProperty("location");
  for (const nothing of ["", " ", "%", "zzzz"]) expect(await suggest(person, "location", nothing)).toEqual([]);
});

test("a language is suggested by its English name and by its own", async () => {
  const person = await signIn(service, await service.organization());
  for (const text of ["ger", "Deu"]) expect((await suggest(person, "language", text))[0]).toBe("German");
  expect(await suggest(person, "language", "日")).toEqual(["Japanese"]);
  const portuguese = await suggest(person, "language", "port");
  expect(portuguese).toEqual(["Portuguese", "Portuguese (Brazil)", "Portuguese (Portugal)"]);
  expect(portuguese.map((name) => readLanguage(name))).toMatchObject(portuguese.map((name) => ({ name })));
});

test("suggestions need a session and are limited by organization, apart from its pages", async () => {
  expect((await new PageVisitor(service).get("/playground/suggestions/location?text=a")).status).toBe(401);
  const person = await signIn(service, await service.organization());
  const statuses = new Map<number, number>();
  for (let asked = 0; asked < 320; asked += 20)
    for (const { status } of await Promise.all(
      Array.from({ length: 20 }, () => person.get("/playground/suggestions/language?text=a")),
    ))
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
  expect(Object.fromEntries(statuses)).toEqual({ 200: 300, 429: 20 });
  expect((await person.get("/playground")).status).toBe(200);
});
