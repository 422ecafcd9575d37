/** Every fenced block of the pages runs, is checked, or says why it does neither. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { configJsonSchema } from "../../src/config/json-schema.ts";
import { servedKinds } from "../../src/provider/index.ts";
import { problemsOf } from "../unit/config/support.ts";
import { type DemoGateway, startDemoGateway } from "./demo-gateway.ts";
import { type Block, blocksIn, readPage, writtenPages } from "./page.ts";
import { isCommandLine, type Ran, run, runCommandLine, runModule, runShell } from "./run-block.ts";

/** The start page has a separate vendor and runs as a whole: see start.test.ts. */
const pages = writtenPages.filter((page) => page !== "docs/start.md");
const cwd = mkdtempSync(join(tmpdir(), "uas-docs-"));
let gateway: DemoGateway;

beforeAll(async () => {
  gateway = await startDemoGateway(cwd);
});
afterAll(async () => {
  await gateway?.close();
  rmSync(cwd, { recursive: true, force: true });
});

/** A block with its page and its first line, for the names of tests. */
type Named = readonly [name: string, page: string, block: Block];

const blocks: readonly Named[] = pages.flatMap((page) =>
  blocksIn(readPage(page)).map(
    (block): Named => [`${page}: ${block.text.split("\n")[0] ?? ""}`, page, block],
  ),
);
const without = blocks.filter(([, , { reason }]) => reason === undefined);
const inLanguage = (...languages: string[]): readonly Named[] =>
  without.filter(([, , { language }]) => languages.includes(language));
const isConfig = new Ajv2020({
  strict: true,
  strictRequired: false,
  allowUnionTypes: true,
}).compile(configJsonSchema(servedKinds));
const has = (program: string, ...args: string[]): boolean => spawnSync(program, args).status === 0;

/** Some blocks start seven processes, each of which takes ten seconds on a busy machine. */
const timeout = 120_000;

it("every block is in a language that runs or is checked, or has the mark `not run:` with a reason", () => {
  const known = ["sh", "js", "python", "yaml", "json", "sql", "text", "mermaid"];
  expect(without.filter(([, , { language }]) => !known.includes(language))).toEqual([]);
});

describe.runIf(has("curl", "--version"))("commands for the shell", { timeout }, () => {
  it.each(inLanguage("sh"))(
    "the shell command runs as on a fresh start: %s",
    async (_, page, { text }) => {
      for (const [, id = ""] of text.matchAll(/calls show ([\w-]+)/g)) await gateway.recorded(id);
      const isInProcess = page !== "README.md" && isCommandLine(text);
      const ran = await (isInProcess ? runCommandLine : runShell)({ gateway, cwd }, text);
      expect(ran.code, ran.err + ran.out).toBe(0);
      expect(ran.out).not.toContain('"error"');
      const written = text.includes("--output ") ? readFileSync(join(cwd, "speech.wav")) : ran.out;
      expect(written.length).toBeGreaterThan(10);
    },
  );

  it("shows the exact cost of the call that README.md makes", async () => {
    const shown = await runCommandLine({ gateway, cwd }, "./uas calls show my-call-1 --json");
    const { inputTokens, outputTokens, cost } = JSON.parse(shown.out) as Record<string, unknown>;
    const nanos = Math.floor(Number(inputTokens) * 250 + Number(outputTokens) * 2_000);
    expect(Math.round(Number(cost) * 1e9)).toBe(nanos);
    expect(nanos).toBeGreaterThan(0);
  });
});

describe("programs", { timeout }, () => {
  it.each(inLanguage("js"))("the program runs: %s", async (_, page, { text }) => {
    const ran = await runModule({ gateway, cwd }, text);
    expect(ran.code, ran.err).toBe(0);
    // The SDK prints the text; the raw chunks end as a stream in this dialect ends.
    if (/README|clients/.test(page)) {
      expect(ran.out).toMatch(/You said: Hello\n?$|data: \[DONE\]\s*$/);
    }
  });

  it.runIf(has("python3", "--version")).each(inLanguage("python"))(
    "Python can read the program: %s",
    async (_, _page, { text }) => {
      const ran: Ran = await run({ gateway, cwd }, "python3", [
        "-c",
        "import ast, sys; ast.parse(sys.argv[1])",
        text,
      ]);
      expect(ran.code, ran.err).toBe(0);
    },
  );
});

describe("data", () => {
  it.each(inLanguage("yaml"))("the configuration is valid: %s", (_, _page, { text }) => {
    const variables = [...text.matchAll(/\$\{env:(\w+)\}/g)].map(([, name = ""]) => name);
    const valueOf = (name: string): string =>
      name === "SMTP_URL" ? "smtp://u:p@mail.example" : name;
    const env = Object.fromEntries(variables.map((name) => [name, valueOf(name)]));
    const local = text.replaceAll(/\$\{file:[^}]*\}/g, "${file:secret}");
    expect(problemsOf(local, { env, kinds: servedKinds, files: { secret: "k\n" } })).toEqual([]);
    expect(isConfig(parse(text)), JSON.stringify(isConfig.errors)).toBe(true);
  });

  it.each(inLanguage("json"))(
    "the block is JSON, as a whole or in each line: %s",
    (_, _page, { text }) => {
      const lines = text.trim().split("\n");
      const documents = lines.every((line) => line.startsWith("{")) ? lines : [text];
      for (const document of documents) expect(JSON.parse(document)).toBeTypeOf("object");
    },
  );

  it.each(inLanguage("sql"))(
    "PostgreSQL accepts the statements: %s",
    async (_, _page, { text }) => {
      const statements = text.split(/;\s*$/m).filter((statement) => statement.trim() !== "");
      for (const statement of statements) await gateway.prepare(statement);
      expect(statements.length).toBeGreaterThan(0);
    },
  );
});
