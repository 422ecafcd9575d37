/** The commands of docs/start.md, in their order, lead to a charged call. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openGateway } from "../../src/app/gateway.ts";
import { loadConfig } from "../../src/config/load.ts";
import { readSettings } from "../../src/config/settings.ts";
import { servedKinds } from "../../src/provider/index.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { type PlainVendor, startPlainVendor } from "../support/plain-vendor.ts";
import { problemsOf } from "../unit/config/support.ts";
import { blocksIn, blocksOf, readPage } from "./page.ts";
import { runShell } from "./run-block.ts";

const page = readPage("docs/start.md");
const cwd = mkdtempSync(join(tmpdir(), "uas-start-"));
let database: TestDatabase;
let openai: PlainVendor;

beforeAll(async () => {
  database = await createTestDatabase();
  openai = await startPlainVendor(({ body }) => ({
    body: JSON.stringify({
      id: "chatcmpl-1",
      object: "chat.completion",
      created: 1,
      model: (JSON.parse(body) as { model: string }).model,
      choices: [
        { index: 0, message: { role: "assistant", content: "Hello!" }, finish_reason: "stop" },
      ],
      usage: { prompt_tokens: 1000, completion_tokens: 50, total_tokens: 1050 },
    }),
  }));
});
afterAll(async () => {
  await openai?.close();
  await database?.close();
  rmSync(cwd, { recursive: true, force: true });
});

it("the commands of the page create an account with a balance and a key, and their call is charged at the page's price", async () => {
  const [configuration] = blocksOf(page, ["yaml"]);
  const file = join(cwd, "uas.yaml");
  writeFileSync(
    file,
    (configuration?.text ?? "").replace(
      "{ kind: openai,",
      `{ kind: openai, base_url: "${openai.url}/v1",`,
    ),
  );
  const env = {
    DATABASE_URL: database.url,
    UAS_CONFIG: file,
    UAS_LISTEN: "127.0.0.1:0",
    UAS_INTERNAL_LISTEN: "127.0.0.1:0",
    OPENAI_API_KEY: "key-of-the-reader",
  };
  const config = loadConfig({ env, cwd, kinds: servedKinds, unresolved: "refuse" });
  const gateway = await openGateway({ settings: readSettings(env, cwd), config });
  try {
    const urls = await gateway.listen();
    const commands = blocksOf(page, ["sh"]).map(({ text }) => text);
    const ran = await runShell({ gateway: { ...urls, env }, cwd }, commands.join("\n"));
    expect(ran.code, ran.err + ran.out).toBe(0);
    expect(openai.requests.map(({ headers }) => headers.authorization)).toEqual([
      "Bearer key-of-the-reader",
    ]);
    // 1,000 × 0.25 USD and 50 × 2 USD, each for a million tokens.
    expect(ran.out).toMatch(/^amount +0\.00035$/m);
    expect(ran.out).toMatch(/^available +9\.99965$/m);
  } finally {
    await gateway.close();
  }
}, 120_000);

it("each line for another vendor is a valid configuration", () => {
  const lines = [...page.matchAll(/^\| .* \| `(\w+: \{.*\})` \|$/gm)].map(([, line = ""]) => line);
  const text = `version: 1\nvendors:\n${lines.map((line) => `  ${line}\n`).join("")}models: {}\n`;
  const names = [...text.matchAll(/\$\{env:(\w+)\}/g)].map(([, name = ""]) => name);
  const env = Object.fromEntries(names.map((name) => [name, name]));
  expect(lines).toHaveLength(5);
  expect(problemsOf(text, { env, kinds: servedKinds })).toEqual([]);
});

it("every other block of the page says why it does not run", () => {
  const others = blocksIn(page).filter(({ language }) => !["yaml", "sh"].includes(language));
  expect(others.filter(({ reason }) => reason === undefined)).toEqual([]);
});
