/** Commands and programs of README.md and of the pages for callers work on a fresh start. */
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { problemsOf } from "../unit/config/support.ts";
import { type DemoGateway, startDemoGateway } from "./demo-gateway.ts";
import { blocksOf, readPage, root } from "./page.ts";

const readme = readPage("README.md");
const pages = ["README.md", "docs/clients.md", "docs/images-and-audio.md", "docs/tasks.md"];
const cwd = mkdtempSync(join(tmpdir(), "uas-docs-"));
let gateway: DemoGateway;

beforeAll(async () => {
  gateway = await startDemoGateway(cwd);
});
afterAll(async () => {
  await gateway?.close();
  rmSync(cwd, { recursive: true, force: true });
});

interface Ran {
  readonly code: unknown;
  readonly out: string;
  readonly err: string;
}

/** Runs what a block says, with this gateway's addresses. */
async function run(program: string, args: readonly string[]): Promise<Ran> {
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

/** Without a shell and curl, as on a bare Windows, there is nobody to paste these lines. */
const hasCurl = spawnSync("sh", ["-c", "curl --version"]).status === 0;

const textsOf = (language: string): [string, string][] =>
  pages.flatMap((page) =>
    blocksOf(readPage(page), [language]).map(({ text }): [string, string] => [
      `${page}: ${text.split("\n")[0] ?? ""}`,
      text,
    ]),
  );
const commands = textsOf("sh");
const programs = textsOf("js");

/** The block for this gateway: its addresses, and failure wherever curl is refused. */
function here(text: string): string {
  return text
    .replaceAll("http://127.0.0.1:8080", gateway.publicUrl)
    .replaceAll("http://127.0.0.1:8081", gateway.internalUrl)
    .replaceAll("127.0.0.1:8081", new URL(gateway.internalUrl).host)
    .replaceAll("curl http", "curl -sS --fail http")
    .replaceAll("curl -N", "curl -sS --fail -N")
    .replaceAll("speech.wav", join(cwd, "speech.wav"))
    .replaceAll("npx buf", "node_modules/.bin/buf")
    .replaceAll("npx uas", `"${process.execPath}" bin/uas.js`);
}

/** Some blocks start seven processes, each of which takes ten seconds on a busy machine. */
const timeout = 120_000;

describe.runIf(hasCurl)("commands for the shell", { timeout }, () => {
  it("commands for the shell stand on every page for callers", () => {
    for (const page of pages) {
      expect(commands.filter(([name]) => name.startsWith(`${page}:`))).not.toEqual([]);
    }
  });

  it.each(commands)("the shell command runs as on a fresh start: %s", async (_name, text) => {
    for (const [, id = ""] of text.matchAll(/calls show (\S+)/g)) await gateway.recorded(id);
    const ran = await run("sh", ["-euc", here(text)]);
    expect(ran.code, ran.err + ran.out).toBe(0);
    expect(ran.out).not.toContain('"error"');
    const written = text.includes("--output") ? readFileSync(join(cwd, "speech.wav")) : ran.out;
    expect(written.length).toBeGreaterThan(10);
  });

  it("shows the exact cost of the call that it made", async () => {
    const shown = await run(process.execPath, [
      "bin/uas.js",
      "calls",
      "show",
      "my-call-1",
      "--json",
    ]);
    const { inputTokens, outputTokens, cost } = JSON.parse(shown.out) as Record<string, unknown>;
    const nanos = Math.floor(Number(inputTokens) * 250 + Number(outputTokens) * 2_000);
    expect(Math.round(Number(cost) * 1e9)).toBe(nanos);
    expect(nanos).toBeGreaterThan(0);
  });
});

describe("programs", { timeout }, () => {
  it.each(programs)("the program runs: %s", async (_name, text) => {
    const ran = await run(process.execPath, ["--input-type=module", "-e", here(text)]);
    expect(ran.code, ran.err).toBe(0);
    // The SDK prints the text; the raw chunks end as a stream in this dialect ends.
    expect(ran.out).toMatch(/You said: Hello\n?$|data: \[DONE\]\s*$/);
  });
});

describe("README.md", () => {
  it("shows a configuration that is right", () => {
    const blocks = blocksOf(readme, ["yaml"]);
    expect(blocks.length).toBe(1);
    for (const { text } of blocks) {
      expect(problemsOf(text, { env: { OPENAI_API_KEY: "k", ANTHROPIC_API_KEY: "k" } })).toEqual(
        [],
      );
    }
  });

  it("and docs/native.md both begin with a configuration that is right", () => {
    const [first] = blocksOf(readPage("docs/native.md"), ["yaml"]);
    expect(problemsOf(first?.text ?? "", { env: { GEMINI_API_KEY: "k" } })).toEqual([]);
  });

  it("is short enough to be read at once", () => {
    expect(readme.split("\n").length).toBeLessThanOrEqual(200);
  });
});

describe("CONTRIBUTING.md", () => {
  it("names scripts that exist, and every script", () => {
    const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
      scripts: Record<string, string>;
    };
    const named = [
      ...readPage("CONTRIBUTING.md").matchAll(/^\| `npm (?:run )?([a-z:]+)` \|/gm),
    ].map(([, script = ""]) => script);
    const parts = new Set(["lint", "types"]); // of `check`
    const expected = Object.keys(scripts).filter((name) => !parts.has(name));
    expect(named.toSorted()).toEqual(expected.toSorted());
  });
});
