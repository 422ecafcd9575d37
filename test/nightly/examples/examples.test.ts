/** Every program of examples/ works as its page says. The ones over gRPC are in grpc.test.ts. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, expect, test } from "vitest";
import { signatureHeaders, newSecret } from "../../../src/webhook/signature.ts";
import { type DemoGateway, startDemoGateway } from "../../docs/demo-gateway.ts";
import { startGateway } from "../../support/gateway.ts";
import { strictGemini } from "../../support/upstream/gemini-strict.ts";
import { startUpstream } from "../../support/upstream/upstream.ts";
import { type Environment, type Run, runProgram } from "./run-program.ts";

const root = join(import.meta.dirname, "../../..");
const examples = join(root, "examples");

let folder: string;
let gateway: DemoGateway;
let env: Environment;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "uas-examples-"));
  gateway = await startDemoGateway(folder);
  env = { UAS_URL: gateway.publicUrl, UAS_API_KEY: gateway.env["UAS_API_KEY"] };
});
afterAll(async () => {
  await gateway?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Copies an example to a folder where npm's packages are, as its page asks users to do. */
function copyExample(name: string): string {
  const cwd = join(folder, name);
  cpSync(join(examples, name), cwd, { recursive: true });
  symlinkSync(join(root, "node_modules"), join(cwd, "node_modules"));
  return cwd;
}

async function runNode(name: string, variables: Environment, ...args: string[]): Promise<Run> {
  const cwd = copyExample(name);
  return await runProgram(process.execPath, ["main.ts", ...args], { cwd, env: variables });
}

test("examples/README.md lists every example, and each has a page", () => {
  const folders = readdirSync(examples, { withFileTypes: true }).filter((each) =>
    each.isDirectory(),
  );
  const names = folders.map(({ name }) => name).toSorted();
  const page = readFileSync(join(examples, "README.md"), "utf8");
  const listed = [...page.matchAll(/^\| \[([a-z-]+)\]\(\1\/README\.md\)/gm)].map(
    ([, name = ""]) => name,
  );
  expect(listed.toSorted()).toEqual(names);
  for (const name of names) {
    expect(readFileSync(join(examples, name, "README.md"), "utf8")).toMatch(/^# /);
  }
});

test("OpenAI's SDK in Node.js streams a reply, and reads the code of an error", async () => {
  const { code, output } = await runNode("openai-node", env);
  expect(output).toMatch(/Hello[^]*\n404 model_not_found, request \S+\n$/);
  expect(code).toBe(0);
});

test("Anthropic's SDK in Node.js streams a reply with its usage, and reads an error", async () => {
  const { code, output } = await runNode("anthropic-node", env);
  expect(output).toMatch(/Hello[^]*\n\d+ tokens in, \d+ out\n404 not_found_error, request \S+\n$/);
  expect(code).toBe(0);
});

test.for([
  ["openai", /Hello[^]*\n404 model_not_found, request \S+\n$/],
  ["anthropic", /Hello[^]*\n\d+ tokens in, \d+ out\n404, request \S+\n$/],
] as const)(
  "the SDK %s in Python streams a reply, and reads an error",
  async ([sdk, expected], { skip }) => {
    const cwd = copyExample(`${sdk}-python`);
    const made = await runProgram("python3", ["-m", "venv", "venv"], { cwd });
    if (made.code !== 0) skip("there is no python3 with venv");
    const install = ["install", "--quiet", "--retries", "0", sdk];
    const installed = await runProgram("venv/bin/pip", install, { cwd });
    if (installed.code !== 0) skip(`pip cannot install ${sdk}`);
    const { code, output } = await runProgram("venv/bin/python", ["main.py"], { cwd, env });
    expect(output).toMatch(expected);
    expect(code).toBe(0);
  },
);

test("a task is submitted, awaited by polls, and not repeated for the same id", async () => {
  const first = await runNode("task-polling", env, "order-1");
  expect(first.output).toMatch(/^https?:\/\/\S+\ncost: 0\.\d+ USD\n$/);
  const cwd = join(folder, "task-polling");
  const second = await runProgram(process.execPath, ["main.ts", "order-1"], { cwd, env });
  expect(second.output).toBe(first.output);
});

test("the webhook receiver accepts genuine webhooks once, and refuses others", async () => {
  const secret = newSecret();
  const child = spawn(process.execPath, ["main.ts"], {
    cwd: copyExample("webhook-receiver"),
    env: { ...process.env, UAS_WEBHOOK_SECRET: secret, PORT: "0" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    const line = async (): Promise<string> => String((await lines.next()).value);
    const port = /port: (\d+)/.exec(await line())?.[1];
    const payload = {
      status: "completed",
      callback_id: "order-1",
      result_url: "https://files.example/1",
      external_data: { event_id: "event-1" },
    };
    const body = Buffer.from(JSON.stringify(payload));
    const message = { eventId: "event-1", body, time: new Date() };
    const post = async (signedWith: string): Promise<number> => {
      const headers = signatureHeaders(message, { current: signedWith, other: undefined });
      const reply = await fetch(`http://127.0.0.1:${port}/`, { method: "POST", headers, body });
      return reply.status;
    };
    expect(await post(newSecret())).toBe(401);
    expect([await post(secret), await post(secret)]).toEqual([204, 204]);
    expect(await line()).toBe("order-1 completed https://files.example/1");
    child.kill();
    // The second delivery printed nothing.
    expect(await lines.next()).toMatchObject({ done: true });
  } finally {
    child.kill();
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  }
});

test("Google's own client streams a reply over the native path", async () => {
  const upstream = await startUpstream({ style: strictGemini() });
  const native = await startGateway({
    vendors: {
      gemini: {
        kind: "gemini",
        baseUrl: upstream.origin,
        apiKey: upstream.secret,
        nativePrefix: "/gemini",
      },
    },
    models: {
      "gemini-2.5-flash": { routes: [{ vendor: "gemini", model: "vendor-model" }] },
    },
  });
  try {
    const { key } = await native.customer();
    const { code, output } = await runNode("vendor-client", {
      UAS_URL: native.url,
      UAS_API_KEY: key,
    });
    expect(output).not.toContain("Error");
    expect(code).toBe(0);
    expect(upstream.violations).toEqual([]);
  } finally {
    await native.close();
    await upstream.close();
  }
});

test("uas check accepts the configuration of three vendors", async () => {
  const keys = { OPENAI_API_KEY: "a", ANTHROPIC_API_KEY: "b", GEMINI_API_KEY: "c" };
  const { code, output } = await runProgram(
    process.execPath,
    [join(root, "bin/uas.js"), "check", "uas.yaml"],
    { cwd: join(examples, "operator"), env: keys },
  );
  expect(output).toBe("ok: 3 vendors, 4 models\n");
  expect(code).toBe(0);
});
