/** The gateway as the bench runs it: the real `serve`, with a database, keys, money and log. */
import { type ChildProcess, execFile } from "node:child_process";
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
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
import { start } from "./child.ts";
import type { BenchDatabase } from "./database.ts";
import { freePort } from "./ports.ts";
import { publicModel, scenarios, type VendorName, vendorModel } from "./scenario.ts";

/** The folder of the checkout that this bench is of. */
export const ownFolder: string = fileURLToPath(new URL("..", import.meta.url));

/** Maximum time for the gateway to listen. */
const startMs = 120_000;

/** An installation of the gateway in a separate folder. */
export interface Installation {
  /** The folder of the checkout. */
  readonly root: string;
  readonly env: Readonly<Record<string, string>>;
  readonly port: number;
  readonly logPath: string;
}

/** Options of an installation. */
export interface InstallOptions {
  /** The folder of the checkout. */
  readonly root: string;
  /** The folder of its configuration and log. */
  readonly folder: string;
  /** The ports of its vendors. */
  readonly vendors: Readonly<Record<VendorName, number>>;
  readonly database: BenchDatabase;
}

/** Writes a configuration with one model for each scenario. */
export async function install(options: InstallOptions): Promise<Installation> {
  const { root, folder, vendors, database } = options;
  const config = join(folder, "uas.yaml");
  const lines = [
    "version: 1",
    "vendors:",
    // A turn ends in the middle of its streams. Without `abort` they would be read on in the
    // gateway's next turn.
    ...Object.entries(vendors).map(
      ([name, port]) =>
        `  ${name}: { kind: openai-compatible, base_url: "http://127.0.0.1:${port}/v1", on_disconnect: abort }`,
    ),
    "models:",
    ...scenarios.map(
      ({ name, vendor }) =>
        `  ${publicModel(name)}: { type: TEXT, routes: [{ vendor: ${vendor}, model: ${vendorModel(name)} }], max_output_tokens: 16384, price: { input: "0.25", output: "2.00" } }`,
    ),
  ];
  writeFileSync(config, `${lines.join("\n")}\n`);
  const port = await freePort();
  const env = {
    ...database.env,
    UAS_DATA_DIR: join(folder, "data"),
    UAS_OPERATOR_TOKEN: operatorToken,
    UAS_CONFIG: config,
    UAS_LISTEN: `127.0.0.1:${port}`,
    UAS_INTERNAL_LISTEN: `127.0.0.1:${await freePort()}`,
  };
  return { root, env, port, logPath: join(folder, "gateway.log") };
}

/** Starts `serve`, and waits until it is ready. `onStart` gets the process before. */
export async function serve(
  installation: Installation,
  onStart: (child: ChildProcess) => void,
): Promise<ChildProcess> {
  const output = openSync(installation.logPath, "a");
  const child = start([process.execPath, join(installation.root, "bin/uas.js"), "serve"], {
    core: "contestant",
    env: { UAS_DRAIN_DELAY: "0s", ...startVariables, ...installation.env },
    stdio: ["ignore", output, output],
  });
  closeSync(output);
  onStart(child);
  await ready(installation, child);
  return child;
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

const retriesMax = 5;

/**
 * Retries if the gateway requests it: on a busy machine its database may not answer within a
 * second.
 */
const retry: Interceptor = (next) => async (request) => {
  for (let left = retriesMax; ; left--) {
    try {
      return await next(request);
    } catch (error) {
      if (left === 0 || ConnectError.from(error).code !== Code.Unavailable) throw error;
      await sleep(1_000);
    }
  }
};

const operatorToken = "bench-operator";

/** Uses the RPCs of a running gateway. */
export function operate({ env }: Installation): Operator {
  const asOperator: Interceptor = (next) => (request) => {
    request.header.set("authorization", `Bearer ${operatorToken}`);
    return next(request);
  };
  const transport = createConnectTransport({
    baseUrl: `http://${env["UAS_INTERNAL_LISTEN"]}`,
    httpVersion: "1.1",
    interceptors: [retry, asOperator],
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

/** Runs `uas ledger audit`. @throws if it finds a broken rule */
export async function audit({ root, env }: Installation): Promise<void> {
  await promisify(execFile)(process.execPath, [join(root, "bin/uas.js"), "ledger", "audit"], {
    env: { ...process.env, ...env },
  });
}

async function ready({ port, logPath }: Installation, child: ChildProcess): Promise<void> {
  for (const end = performance.now() + startMs; performance.now() < end; await sleep(20)) {
    const status = await fetch(`http://127.0.0.1:${port}/readyz`).then(
      (response) => response.status,
      () => 0,
    );
    if (status === 200) return;
    if (child.exitCode !== null || child.signalCode !== null) {
      throw new Error(`the gateway ended: ${readFileSync(logPath, "utf8").slice(-2_000)}`);
    }
  }
  throw new Error(`the gateway was not ready after ${startMs} ms`);
}
