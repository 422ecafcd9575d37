/** The gateway as the bench runs it: the real `serve`, with a database, keys, money and log. */
import { execFile, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { AccountService } from "../gen/uas/account/v1/account_service_pb.ts";
import { BillingService } from "../gen/uas/billing/v1/billing_service_pb.ts";
import { KeyService } from "../gen/uas/key/v1/key_service_pb.ts";
import type { RateLimitsSchema } from "../gen/uas/type/v1/rate_limits_pb.ts";
import { startVariables } from "../test/support/child.ts";
import { type Child, type Core, start } from "./child.ts";
import type { BenchDatabase } from "./database.ts";
import { pacedModel, publicModel, scenarios, vendorModel } from "./scenario.ts";
import { styleNames } from "./style.ts";

/** The folder of the checkout that this bench is of. */
export const ownFolder: string = fileURLToPath(new URL("..", import.meta.url));

/** How long the gateway may take to listen, in milliseconds. */
const startMs = 120_000;

/** An installation of the gateway in a folder of its own. */
export interface Installation {
  /** The folder of the checkout whose gateway it is. */
  readonly root: string;
  readonly env: Readonly<Record<string, string>>;
  readonly port: number;
  readonly logPath: string;
}

/** What an installation needs. */
export interface InstallOptions {
  /** The folder of the checkout. Default: this one. */
  readonly root?: string;
  /** Where its configuration and log go. */
  readonly folder: string;
  /** Where its one vendor listens. */
  readonly upstreamPort: number;
  readonly database: BenchDatabase;
}

/** Writes a configuration, one model for each scenario. */
export function install(options: InstallOptions): Promise<Installation> {
  const { root = ownFolder, folder, upstreamPort, database } = options;
  const models = scenarios.map(({ name, isForm = false }) => {
    const vendor = name === "native" ? "gemini" : "bench";
    const route = `routes: [{ vendor: ${vendor}, model: ${vendorModel(name)} }]`;
    if (isForm)
      return `  ${publicModel(name)}: { type: AUDIO, ${route}, price: { second: "0.0001" } }`;
    const price = `price: { input: "0.25", output: "2.00" }`;
    return `  ${publicModel(name)}: { type: TEXT, ${route}, max_output_tokens: 16384, ${price} }`;
  });
  const paced = styleNames.map((style) => {
    const route = `routes: [{ vendor: ${style}, model: ${vendorModel("paced")} }]`;
    const price = `price: { input: "0.25", output: "2.00" }`;
    return `  ${pacedModel(style)}: { type: TEXT, ${route}, max_output_tokens: 16384, ${price} }`;
  });
  const base = `http://127.0.0.1:${upstreamPort}`;
  const key = `api_key: "\${env:BENCH_KEY}"`;
  // A turn ends in the middle of its streams. Without `abort` they would be read on for seconds, in the gateway's next turn.
  const vendors = [
    `bench: { kind: openai-compatible, base_url: "${base}/v1"`,
    `gemini: { kind: gemini, base_url: "${base}/gemini", ${key}, native_prefix: /gemini`,
    `chat: { kind: openai-compatible, base_url: "${base}/v1"`,
    `responses: { kind: openai, base_url: "${base}/v1", ${key}, dialects: [responses]`,
    `messages: { kind: anthropic, base_url: "${base}", ${key}`,
  ].map((vendor) => `  ${vendor}, on_disconnect: abort }`);
  const lines = ["vendors:", ...vendors, "models:", ...models, ...paced];
  return installWith({ root, folder, database, lines });
}

/** What a configuration of one's own needs. */
export interface InstallWithOptions extends Pick<InstallOptions, "root" | "folder" | "database"> {
  /** Of the configuration, below its version. */
  readonly lines: readonly string[];
  /** What else the environment says. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Writes a configuration as it is given. */
export async function installWith(options: InstallWithOptions): Promise<Installation> {
  const { root = ownFolder, folder, database, lines } = options;
  const config = join(folder, "uas.yaml");
  writeFileSync(config, `${["version: 1", ...lines].join("\n")}\n`);
  const port = await freePort();
  const env = {
    ...database.env,
    UAS_DATA_DIR: join(folder, "data"),
    // Gateways of one database encrypt with the same one.
    UAS_MASTER_KEY: Buffer.alloc(32, 1).toString("base64"),
    BENCH_KEY: "none",
    UAS_OPERATOR_TOKEN: operatorToken,
    UAS_CONFIG: config,
    UAS_LISTEN: `127.0.0.1:${port}`,
    UAS_INTERNAL_LISTEN: `127.0.0.1:${await freePort()}`,
    ...options.env,
  };
  return { root, env, port, logPath: join(folder, "gateway.log") };
}

/** The same configuration and database, served by `workers` processes at another address. */
export async function withWorkers(
  installation: Installation,
  workers: number,
): Promise<Installation> {
  const port = await freePort();
  const env = {
    ...installation.env,
    // A data folder has one owner.
    UAS_DATA_DIR: `${installation.env["UAS_DATA_DIR"]}-${port}`,
    UAS_WORKERS: String(workers),
    UAS_LISTEN: `127.0.0.1:${port}`,
    UAS_INTERNAL_LISTEN: `127.0.0.1:${await freePort()}`,
  };
  return { ...installation, env, port, logPath: `${installation.logPath}.workers-${workers}` };
}

/** Starts `serve`, by default on the contestants' core, and waits until it is ready. */
export async function serve(installation: Installation, core: Core = "contestant"): Promise<Child> {
  const output = openSync(installation.logPath, "a");
  const child = start({
    command: [join(installation.root, "bin/uas.js"), "serve"],
    core,
    env: { UAS_DRAIN_DELAY: "0s", ...startVariables, ...installation.env },
    output,
  });
  closeSync(output);
  await ready(installation, () => child.ask("figures"));
  return child;
}

/** Creates an account with money and returns a key of it. The gateway must run. */
export async function createKey(installation: Installation): Promise<string> {
  const operator = operate(installation);
  return operator.createKey(await operator.createAccount("bench"));
}

/** Limits of a key. */
export type KeyLimits = MessageInitShape<typeof RateLimitsSchema>;

/** Makes accounts and keys of a running gateway of this checkout. */
export interface Operator {
  /** Makes an account with money; resolves with its id. */
  createAccount(name: string): Promise<string>;
  /** Makes a key of an account; resolves with its secret. */
  createKey(accountId: string, rateLimits?: KeyLimits): Promise<string>;
}

/** How often {@link patiently} asks again. */
const askedAgainMax = 5;

/** Asks again where the gateway says so: on a busy machine its database may not answer within the second that it waits. */
const patiently: Interceptor = (next) => async (request) => {
  for (let left = askedAgainMax; ; left--) {
    try {
      return await next(request);
    } catch (error) {
      if (left === 0 || ConnectError.from(error).code !== Code.Unavailable) throw error;
      await sleep(1_000);
    }
  }
};

/** The operator's token of all installations. */
const operatorToken = "bench-operator";

/** Asks the gateway itself: each command line would be a process. */
export function operate({ env }: Installation): Operator {
  const asOperator: Interceptor = (next) => (request) => {
    request.header.set("authorization", `Bearer ${operatorToken}`);
    return next(request);
  };
  const transport = createConnectTransport({
    baseUrl: `http://${env["UAS_INTERNAL_LISTEN"]}`,
    httpVersion: "1.1",
    interceptors: [patiently, asOperator],
  });
  const accounts = createClient(AccountService, transport);
  const billing = createClient(BillingService, transport);
  const keys = createClient(KeyService, transport);
  const amount = { currencyCode: "USD", amountNanos: 900_000_000_000_000n };
  return {
    async createAccount(name) {
      const { account } = await accounts.createAccount({ name });
      const accountId = account?.accountId ?? "";
      await billing.topUp({ accountId, amount, reference: "bench" });
      return accountId;
    },
    async createKey(accountId, rateLimits) {
      const limits = rateLimits && { rateLimits };
      return (await keys.createKey({ accountId, name: "bench", ...limits })).secret;
    },
  };
}

/** The end of the books: what `uas ledger audit` says. Throws where a rule is broken. */
export async function audit(installation: Installation): Promise<void> {
  await command(installation, ["ledger", "audit"]);
}

async function command(
  { root, env }: Installation,
  args: readonly string[],
): Promise<Record<string, unknown>> {
  const uas = join(root, "bin/uas.js");
  const { stdout } = await promisify(execFile)(process.execPath, [uas, ...args, "--json"], {
    env: { ...process.env, ...env },
  });
  return JSON.parse(stdout) as Record<string, unknown>;
}

/** Milliseconds from `npm start` to an answer of `/healthz`, on a data folder that exists. */
export async function measureStart(installation: Installation): Promise<number> {
  const began = performance.now();
  const child = spawn("npm", ["start", "--silent"], {
    cwd: installation.root,
    env: { ...process.env, ...installation.env },
    stdio: "ignore",
  });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  try {
    await ready(installation, () => Promise.resolve(), 2);
    return performance.now() - began;
  } finally {
    child.kill("SIGTERM");
    await exited;
  }
}

/** Asks until the gateway is ready; `isAlive` rejects where it has ended. */
async function ready(
  { port, logPath }: Installation,
  isAlive: () => Promise<unknown>,
  pollMs = 20,
): Promise<void> {
  for (const end = performance.now() + startMs; performance.now() < end; ) {
    const status = await fetch(`http://127.0.0.1:${port}/readyz`).then(
      (response) => response.status,
      () => 0,
    );
    if (status === 200) return;
    await isAlive().catch(() => {
      throw new Error(`the gateway ended: ${readFileSync(logPath, "utf8").slice(-2_000)}`);
    });
    await sleep(pollMs);
  }
  throw new Error(`the gateway was not ready after ${startMs} ms`);
}

/** Below those that systems give to outgoing connections, one of which could take a port before the gateway does. Benches that
 * run beside each other look at different ports first, for the same reason. */
const ports = { first: 20_000, count: 12_000, perBench: 20 };

let nextPort = (process.pid * ports.perBench) % ports.count;

async function freePort(): Promise<number> {
  for (;;) {
    const port = ports.first + (nextPort++ % ports.count);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
