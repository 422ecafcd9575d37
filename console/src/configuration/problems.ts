/** Problems of a document as the gateway lists them: `line:column path: message`. */
import type { Path } from "./document.ts";

/** A problem or a warning. */
export interface Problem {
  /** From 1; 0 if it is not known. */
  readonly line: number;
  /** From 1; 0 if the problem is about the whole entry in this line. */
  readonly column: number;
  /** Empty if it is about no particular value. */
  readonly path: string;
  readonly message: string;
}

const step = String.raw`[\w/:@+-]+|\["(?:[^"\\]|\\.)*"\]|\[\d+\]`;

const form = new RegExp(
  String.raw`^(?<line>\d+)(?::(?<column>\d+))? (?:(?<path>(?:${step})(?:\.?(?:${step}))*): )?(?<message>[^]*)$`,
);

/** Reads a line of CheckConfig. */
export function readProblem(text: string): Problem {
  const { line = "0", column = "0", path = "", message = text } = form.exec(text)?.groups ?? {};
  const place = { line: Number(line), column: Number(column) };
  // The gateway reports a missing key where its map is; here it belongs to the key's field.
  const [, key, rest = ""] = /^(\w+) (is missing: [^]*)$/.exec(message) ?? [];
  if (key === undefined) return { ...place, path, message };
  return { ...place, path: path === "" ? key : `${path}.${key}`, message: rest };
}

/** A path as the gateway writes it: `models["gpt-4.1"].routes[0]`. */
export function pathText(path: Path): string {
  return path.reduce<string>((text, each) => {
    if (typeof each === "number") return `${text}[${each}]`;
    if (!/^[\w/:@+-]+$/.test(each)) return `${text}[${JSON.stringify(each)}]`;
    return text === "" ? each : `${text}.${each}`;
  }, "");
}

/** Whether a problem is at a path, or below it. */
export function isAt(problem: Problem, path: Path): boolean {
  const text = pathText(path);
  if (!problem.path.startsWith(text)) return false;
  const rest = problem.path.slice(text.length);
  return rest === "" || rest.startsWith(".") || rest.startsWith("[");
}
