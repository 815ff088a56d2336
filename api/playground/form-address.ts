import { organicPerPage } from "../../shared/query/depth.ts";

/** A query as requests and the search log have it. */
interface FormQuery {
  keyword: string;
  location?: string;
  language?: string;
  device?: string;
  depth?: number;
  targetDomain?: string | undefined;
  types?: readonly string[] | undefined;
  format?: string | undefined;
}

/** The address of the form with a query filled in, without what is the default. */
export function formAddress({ device, depth, types = [], ...query }: FormQuery): string {
  const { keyword, location, language, targetDomain, format } = query;
  const texts = {
    keyword,
    location,
    language,
    targetDomain,
    format,
    device: device === "desktop" ? undefined : device,
    depth: depth === organicPerPage ? undefined : depth?.toString(),
  };
  const fields = new URLSearchParams();
  for (const [name, value] of Object.entries(texts)) if (value !== undefined) fields.append(name, value);
  for (const type of types) fields.append("types", type);
  return `/playground?${fields.toString()}`;
}
