/** The reference of fixed limits, from the constants and comments of `src/core/limits.ts`. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as limits from "../../src/core/limits.ts";
import { code, table } from "./table.ts";

/** A comment with the constants behind it, or the headline of a section. */
const element =
  /^\/\/ (?<headline>[A-Z].*)$|\/\*\*(?<comment>(?:(?!\*\/)[^])*)\*\/\n(?<constants>(?:export const [^]*?;\n)+)/gm;

/** The page of all limits, by section. */
export function limitsPage(): string {
  const source = readFileSync(join(import.meta.dirname, "../../src/core/limits.ts"), "utf8");
  const values = new Map<string, unknown>(Object.entries(limits));
  const parts: string[] = [];
  let rows: string[][] = [];
  const endSection = (): void => {
    if (rows.length > 0) parts.push(table(["limit", "value", "meaning"], rows));
    rows = [];
  };
  for (const { groups } of source.matchAll(element)) {
    const { headline, comment, constants } = groups ?? {};
    if (headline !== undefined) {
      endSection();
      parts.push(`## ${headline}`);
      continue;
    }
    const names = namesIn(constants ?? "").filter((name) => values.has(name));
    if (names.length === 0) continue;
    const written = names.map((name) => valueText(name, values.get(name)));
    rows.push([names.map(code).join(", "), written.join("; "), plain(comment ?? "")]);
  }
  endSection();
  return `# Fixed limits

Here you find every limit that no setting changes, with its reason; also the defaults of settings. Generated from
\`src/core/limits.ts\`.

${parts.join("\n\n")}`;
}

function namesIn(constants: string): string[] {
  return [...constants.matchAll(/^export const (?:\[([^\]]*)\]|(\w+))/gm)].flatMap(
    ([, several, one]) => (one === undefined ? (several ?? "").split(/,\s*/) : [one]),
  );
}

function plain(comment: string): string {
  return comment
    .replaceAll(/\n \* ?/g, " ")
    .replaceAll(/\{@link ([\w.]+)\}/g, "`$1`")
    .trim();
}

function valueText(name: string, value: unknown): string {
  if (typeof value === "number") return numberText(name, value);
  if (Array.isArray(value)) return value.map((each) => valueText(name, each)).join(", ");
  if (typeof value !== "object" || value === null) return String(value);
  const members = Object.entries(value).map(
    ([key, each]) => `${key} ${valueText(unit(name, key), each)}`,
  );
  return members.join(", ");
}

/** The name that has the unit: the member's if it has one, else that of the constant. */
function unit(name: string, key: string): string {
  return /(?:Ms|Bytes)/.test(key) || key === "max" ? key : name;
}

const units = [
  { word: "d", ms: 86_400_000 },
  { word: "h", ms: 3_600_000 },
  { word: "min", ms: 60_000 },
  { word: "s", ms: 1_000 },
  { word: "ms", ms: 1 },
] as const;

const sizes = [
  { word: "GiB", bytes: 2 ** 30 },
  { word: "MiB", bytes: 2 ** 20 },
  { word: "KiB", bytes: 2 ** 10 },
] as const;

function numberText(name: string, value: number): string {
  if (/Ms(?:Max|Default)?$/.test(name)) {
    const { word, ms } = units.find((each) => value % each.ms === 0) ?? { word: "ms", ms: 1 };
    return `${value / ms} ${word}`;
  }
  if (/Bytes(?:Max|Kept)?$/.test(name)) {
    const size = sizes.find((each) => value % each.bytes === 0);
    return size === undefined ? `${value} bytes` : `${value / size.bytes} ${size.word}`;
  }
  return value.toLocaleString("en-US");
}
