import { readSource, sources } from "../harness/assertions/sources.ts";

/** A page of the documentation, read as Markdown. */
export interface Page {
  /** From the root of the checkout. */
  path: string;
  text: string;
  /** Fenced blocks, in order. `info` is what follows the fence: `sh runnable`. */
  blocks: { info: string; text: string; line: number }[];
  /** The text without fenced blocks. Line numbers stay the same. */
  prose: string;
}

/** Those of the project, and those that its packages carry. */
export const pages: readonly Page[] = sources("*.md", "docs/**/*.md", "clients/*/README.md").map(({ path, text }) =>
  readPage(path, text),
);

/** @throws {Error} if there is no such page. */
export function page(path: string): Page {
  return readPage(path, readSource(path));
}

function readPage(path: string, text: string): Page {
  const blocks: Page["blocks"] = [];
  const prose = text.replace(
    /^```(.*)\n([\s\S]*?)^```$/gm,
    (block: string, info: string, content: string, at: number) => {
      blocks.push({ info, text: content, line: text.slice(0, at).split("\n").length });
      return block.replace(/[^\n]/g, "");
    },
  );
  return { path, text, blocks, prose };
}

/** What stands in backticks outside of fenced blocks. */
export function inlineCode({ prose }: Page): string[] {
  return [...prose.matchAll(/`([^`\n]+)`/g)].map(([, code = ""]) => code);
}

/** The anchors that GitHub makes of a page's headings. */
export function anchorsOf({ prose }: Page): Set<string> {
  const titles = [...prose.matchAll(/^#{1,6} (.+)$/gm)].map(([, title = ""]) => title);
  return new Set(
    titles.map((title) =>
      title
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );
}

/** The rows of every table whose first column has this title. A row maps column titles to cells. */
export function tableRows({ prose }: Page, firstColumn: string): Record<string, string>[] {
  const tables = prose.match(/(?:^\|.*\n)+/gm) ?? [];
  return tables.flatMap((table) => {
    const [titles = [], , ...rows] = table.trimEnd().split("\n").map(cellsOf);
    if (titles[0] !== firstColumn) return [];
    return rows.map((cells) =>
      Object.fromEntries(titles.map((title, at) => [title.replaceAll("`", ""), cells[at] ?? ""])),
    );
  });
}

function cellsOf(line: string): string[] {
  return line
    .slice(1, -1)
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim());
}

/** What a cell has in backticks. */
export const codesIn = (cell: string | undefined): string[] =>
  [...(cell ?? "").matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);
