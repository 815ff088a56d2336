import { readFileSync } from "node:fs";

const parameters = ["sslrootcert", "sslcert", "sslkey"];

export const expectedFiles = `expected that this process can read the files in ${parameters.join(", ")}`;

/** Whether the files that the address of Postgres names are there. The client reads them for each connection: without one, every query fails. */
export function hasFiles(url: string): boolean {
  const given = URL.parse(url)?.searchParams;
  try {
    for (const path of parameters.flatMap((name) => given?.getAll(name) ?? [])) readFileSync(path);
    return true;
  } catch {
    return false;
  }
}
