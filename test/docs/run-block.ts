/** Runs the commands and programs of the pages against a gateway, as their reader would. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { inspectDatabase } from "../../src/app/database-check.ts";
import { probeVendors } from "../../src/app/vendor-probe.ts";
import { openBackend } from "../../src/app/backend.ts";
import { runCli } from "../../src/cli/program.ts";
import { servedKinds } from "../../src/provider/index.ts";
import type { DemoGateway } from "./demo-gateway.ts";
import { root } from "./page.ts";

/** The result of a command or program. */
export interface Ran {
  readonly code: unknown;
  readonly out: string;
  readonly err: string;
}

/** A gateway, and the reader's folder. */
export interface Reader {
  readonly gateway: Pick<DemoGateway, "publicUrl" | "internalUrl" | "env">;
  readonly cwd: string;
}

/** Runs a program in the project's folder with the reader's variables. */
export async function run(
  { gateway, cwd }: Reader,
  program: string,
  args: readonly string[],
): Promise<Ran> {
  const child = spawn(program, args, {
    cwd: root,
    env: {
      ...gateway.env,
      PATH: process.env["PATH"],
      HOME: cwd,
      NODE_OPTIONS: "--disable-warning=ExperimentalWarning",
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let out = "";
  let err = "";
  child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
  const code = await new Promise((resolve) => child.once("close", resolve));
  return { code, out, err };
}

/**
 * A block with this gateway's addresses. The shell fails if a server refuses curl, which repeats a
 * request after a 503 when `retry-after` states it: a busy machine is not a fault of the page.
 */
export function localized({ gateway, cwd }: Reader, text: string): string {
  return text
    .replaceAll("http://127.0.0.1:8080", gateway.publicUrl)
    .replaceAll("http://127.0.0.1:8081", gateway.internalUrl)
    .replaceAll("127.0.0.1:8081", new URL(gateway.internalUrl).host)
    .replaceAll("curl http", "curl -sS --fail --retry 5 http")
    .replaceAll("curl -N", "curl -sS --fail --retry 5 -N")
    .replaceAll("speech.wav", join(cwd, "speech.wav"))
    .replaceAll("npx buf", "node_modules/.bin/buf");
}

/** Runs the lines of a block in a shell. */
export function runShell(reader: Reader, text: string): Promise<Ran> {
  return run(reader, "sh", ["-euc", localized(reader, text)]);
}

/** Runs a JavaScript module. */
export function runModule(reader: Reader, text: string): Promise<Ran> {
  return run(reader, process.execPath, ["--input-type=module", "-e", localized(reader, text)]);
}

/** Whether every line is a command of `./uas` that needs no shell. */
export function isCommandLine(text: string): boolean {
  return linesOf(text).every((line) => line.startsWith("./uas "));
}

/**
 * Runs lines of `./uas` in this process, which takes a tenth of the time of a process for each.
 */
export async function runCommandLine({ gateway, cwd }: Reader, text: string): Promise<Ran> {
  let out = "";
  let err = "";
  for (const line of linesOf(text)) {
    const code = await runCli(["node", "uas", ...wordsOf(line, gateway.env).slice(1)], {
      env: gateway.env,
      cwd,
      version: "",
      out: (written) => void (out += written),
      err: (written) => void (err += written),
      servedKinds: async () => servedKinds,
      app: async () => ({
        openBackend,
        serve: () => Promise.reject(new Error("a page starts a second gateway")),
        rotateMasterKey: () => Promise.reject(new Error("a page changes the master key")),
        probeVendors,
        inspectDatabase,
      }),
    });
    if (code !== 0) return { code, out, err: `${line}\n${err}` };
  }
  return { code: 0, out, err };
}

function linesOf(text: string): string[] {
  return text
    .replaceAll("\\\n", " ")
    .split("\n")
    .map((line) => line.replace(/(^| )#.*$/, "").trim())
    .filter((line) => line !== "");
}

/** Splits a line as a shell does, with double quotes and variables. */
function wordsOf(line: string, env: Readonly<Record<string, string>>): string[] {
  return [...line.matchAll(/(?:"[^"]*"|[^\s"])+/g)].map(([word]) =>
    word.replaceAll('"', "").replaceAll(/\$(\w+)/g, (_match, name: string) => {
      const value = env[name];
      if (value === undefined) throw new Error(`$${name} is not set: ${line}`);
      return value;
    }),
  );
}
