import { readFileSync } from "node:fs";
import type { Request, Response } from "express";
import type { Config } from "../../shared/config.ts";
import { CallerError } from "../../shared/errors.ts";
import { type Brand, readBrand, siteStyle } from "../brand/brand.ts";
import { publicAddress } from "../http/public-address.ts";
import { type StaticFile, staticFile } from "../http/static-file.ts";
import { PageSender } from "../pages/page-sender.ts";
import { landingPage } from "./landing-page.ts";

/** The page at `/`, which leads a person to the reference, the account and the address for agents. */
export interface Landing {
  /** @throws {CallerError} `not_found` for a program, which asks for no HTML. */
  page: (request: Request, response: Response) => void;
  files: StaticFile[];
}

export function openLanding({ PUBLIC_URL: publicUrl }: Pick<Config, "PUBLIC_URL">): Landing {
  const brand: Brand = readBrand();
  const bytes = Buffer.concat([siteStyle(), readFileSync(new URL("landing.css", import.meta.url))]);
  const style = staticFile("/landing.css", "text/css; charset=utf-8", bytes);
  const files = { icon: brand.mark, styles: [brand.style, style], scripts: [] };
  const pages = new PageSender({ files, checkoutOrigin: undefined });
  return {
    files: [style],
    page: (request, response) => {
      // A program that accepts anything gets the JSON that every unknown path has.
      if (request.accepts(["json", "html"]) !== "html") throw new CallerError("not_found");
      const body = landingPage(brand, publicAddress(request, publicUrl));
      pages.send(request, response, { status: 200, title: "Search results as JSON", body });
    },
  };
}
