/** Receivers in other languages: each parses a body and signs what it writes of it. */
import { spawn, spawnSync } from "node:child_process";
import { join } from "node:path";

/** A receiver. */
export interface Language {
  readonly name: string;
  /** The program, and its arguments before the secret. */
  readonly command: readonly string[];
  /** Arguments after the secret. Default: none. */
  readonly after?: readonly string[];
  /** Command that succeeds if it is installed. */
  readonly probe: readonly string[];
}

const file = (name: string): string => join(import.meta.dirname, name);
const python = ["python3", "-c", "import json, hmac"];

/** All that are known. */
export const languages: readonly Language[] = [
  {
    name: "Node.js",
    command: [process.execPath, file("verify.js")],
    probe: [process.execPath, "-v"],
  },
  { name: "Python", command: ["python3", file("verify.py")], probe: python },
  {
    name: "Python, sort_keys",
    command: ["python3", file("verify.py")],
    after: ["sort"],
    probe: python,
  },
  { name: "PHP", command: ["php", file("verify.php")], probe: ["php", "-v"] },
  {
    name: "Ruby",
    command: ["ruby", file("verify.rb")],
    probe: ["ruby", "-e", "require 'openssl'"],
  },
  { name: "Perl", command: ["perl", file("verify.pl")], probe: ["perl", "-MJSON::PP", "-e", "1"] },
  { name: "Go", command: ["go", "run", file("verify.go")], probe: ["go", "version"] },
];

/** Whether a language is installed here. */
export function isInstalled({ probe: [program = "", ...args] }: Language): boolean {
  return spawnSync(program, args, { stdio: "ignore" }).status === 0;
}

/** The signature that a receiver computes of each body. @throws if it fails */
export async function signaturesOf(
  { name, command, after = [] }: Language,
  secret: string,
  bodies: readonly Buffer[],
): Promise<string[]> {
  const [program = "", ...args] = command;
  const child = spawn(program, [...args, secret, ...after], { stdio: ["pipe", "pipe", "inherit"] });
  const output = (async () => {
    let text = "";
    for await (const piece of child.stdout.setEncoding("utf8")) text += piece;
    return text;
  })();
  const exit = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  child.stdin.on("error", () => {});
  child.stdin.end(Buffer.concat(bodies.flatMap((body) => [body, Buffer.from("\n")])));
  const [text, code] = await Promise.all([output, exit]);
  if (code !== 0) throw new Error(`${name} ended with ${code}`);
  return text.trimEnd().split("\n");
}
