/**
 * Runs the commands that a configuration file names as `${exec:…}`: programs of secret stores that
 * print a secret. They run before the file is read, because reading it must not block calls.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Parsed } from "./address.ts";

/** The printed secrets by the text of their commands. */
export type CommandResults = ReadonlyMap<string, Parsed<string>>;

/** The longest time that a command may take. */
export const commandMs = 10_000;

/** The largest output of a command. */
const outputBytesMax = 64 * 1024;

const reference = /\$\{exec:([^}]+)\}/g;

/** Whether a document names a command. */
export function hasCommands(document: string): boolean {
  return document.includes("${exec:");
}

/**
 * Runs each command of a document once, all at the same time, without a shell. Their arguments are
 * separated by spaces; quotes keep spaces. A command that fails is a problem of its reference.
 *
 * @param options.timeoutMs default {@link commandMs}
 */
export async function runCommands(
  document: string,
  { cwd, timeoutMs = commandMs }: { readonly cwd: string; readonly timeoutMs?: number },
): Promise<CommandResults> {
  const commands = [...new Set([...document.matchAll(reference)].map(([, text = ""]) => text))];
  const results = await Promise.all(
    commands.map(async (text) => [text, await run(text, cwd, timeoutMs)] as const),
  );
  return new Map(results);
}

async function run(text: string, cwd: string, timeout: number): Promise<Parsed<string>> {
  const [program = "", ...parameters] = wordsOf(text);
  try {
    const { stdout } = await promisify(execFile)(program, parameters, {
      cwd,
      timeout,
      maxBuffer: outputBytesMax,
      shell: false,
    });
    if (stdout.trim() === "") return { problem: `the command ${program} printed nothing` };
    return { value: stdout.trim() };
  } catch (error) {
    return { problem: `the command ${program} ${failureOf(error, timeout)}` };
  }
}

function wordsOf(text: string): string[] {
  const words = text.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g);
  return [...words].map(([, double, single, plain]) => double ?? single ?? plain ?? "");
}

/** Why a command gave no secret. Its output is not shown: it may be one. */
function failureOf(error: unknown, timeout: number): string {
  const { code, killed } = error as { readonly code?: unknown; readonly killed?: boolean };
  if (killed === true) return `did not end within ${timeout / 1_000} s: run it by hand to see why`;
  if (code === "ENOENT") return "was not found: write its whole path";
  if (code === "EACCES") return "may not be run by this user";
  if (typeof code === "number") return `ended with exit code ${code}: run it by hand to see why`;
  return "could not be run";
}
