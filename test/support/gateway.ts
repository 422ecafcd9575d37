/**
 * A whole gateway for a test: real listeners, real database, real money, a vendor that is
 * simulated.
 */
import { CallService } from "../../gen/uas/billing/v1/call_service_pb.ts";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient, type Client } from "@connectrpc/connect";
import { Pool } from "pg";
import { pino } from "pino";
import { AccountService } from "../../gen/uas/account/v1/account_service_pb.ts";
import type { CallAttempt, CallRecord } from "../../gen/uas/billing/v1/call_pb.ts";
import { BillingService } from "../../gen/uas/billing/v1/billing_service_pb.ts";
import { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import { KeyService } from "../../gen/uas/key/v1/key_service_pb.ts";
import {
  type Gateway as OpenGateway,
  type OpenGatewayOptions,
  openGateway,
} from "../../src/app/gateway.ts";
import { errorWord } from "../../src/core/error-words.ts";
import { auditLedger } from "../../src/billing/audit/audit.ts";
import type {
  Config,
  ConsoleConfig,
  ModelConfig,
  PriceConfig,
  Settings,
  SmsConfig,
  StorageConfig,
  VendorConfig,
} from "../../src/config/config.ts";
import { createTestDatabase, type TestDatabase } from "./database.ts";

/** Differences from the default gateway. */
export interface GatewayOptions {
  /** The vendors by name; at least one. */
  readonly vendors: Readonly<Record<string, TestVendor>>;
  /** The models by key. Default: `public-model`, routed to `vendor-model` of the first vendor. */
  readonly models?: Readonly<Record<string, TestModel>>;
  /** Storage of result files. Default: in the data folder. */
  readonly storage?: StorageConfig;
  /** Sender of one-time codes. Default: none. */
  readonly sms?: SmsConfig;
  /** Console settings. Default: everything is allowed. */
  readonly console?: Partial<ConsoleConfig>;
  /** Origins whose pages may call. Default: none. */
  readonly cors?: Config["cors"];
  /** Names of price lists that accounts can have. Default: none. */
  readonly priceLists?: ReadonlySet<string>;
  /** Default: none. */
  readonly limits?: Config["limits"];
  /** Webhook receivers exempt from the address rules. Default: none. */
  readonly webhooks?: Config["webhooks"];
  /** Intervals of polling vendors about tasks. Default: the intervals of production. */
  readonly taskTimings?: OpenGatewayOptions["taskTimings"];
  /** The gateway's clock. Default: the machine's. */
  readonly clock?: OpenGatewayOptions["clock"];
  /** Overrides of the environment. Default: free ports, no operator token. */
  readonly settings?: Partial<Settings>;
  /**
   * Gives the address at which the gateway finds its database, of the real one. Default: the same.
   */
  readonly databaseAt?: (url: string) => Promise<string>;
  /**
   * A migrated database, which the gateway closes with itself. Default: a new one of the test run.
   */
  readonly database?: TestDatabase;
}

/** A vendor: an address, and what the test changes of the usual settings. */
export type TestVendor = Pick<VendorConfig, "baseUrl"> & Partial<VendorConfig>;

/** A model; what it does not say is as the defaults below. */
export type TestModel = Partial<Omit<ModelConfig, "key">> & {
  /** Its one price. Default {@link priceDefault}. */
  readonly price?: PriceConfig;
};

/** A call of the log, with the documented words of errors. */
export type RecordedCall = Omit<CallRecord, "errorCode" | "attempts"> & {
  readonly errorCode: string;
  readonly attempts: readonly (Omit<CallAttempt, "errorCode"> & { readonly errorCode: string })[];
};

/** A running gateway. */
export interface Gateway {
  /** The public address, without a trailing slash. */
  readonly url: string;
  readonly internalUrl: string;
  /** The data folder. */
  readonly dataDir: string;
  readonly app: OpenGateway;
  /** The database itself, whatever `databaseAt` says. */
  readonly databaseUrl: string;
  readonly accounts: Client<typeof AccountService>;
  readonly keys: Client<typeof KeyService>;
  readonly billing: Client<typeof BillingService>;
  readonly callLog: Client<typeof CallService>;
  /** Lines of the log so far. */
  readonly log: readonly string[];
  /** An account with money and a key. */
  customer(options?: CustomerOptions): Promise<Customer>;
  /** Resolves with the newest call by a request id as soon as it is recorded. */
  call(requestId: string): Promise<RecordedCall>;
  /** Resolves with all calls by a request id as soon as there are `count`. */
  calls(requestId: string, count: number): Promise<RecordedCall[]>;
  /** Money of an account, in nano-USD. */
  money(accountId: string): Promise<Money>;
  /** Puts another configuration into force, as a reload does. */
  reconfigure(change: Partial<GatewayOptions>): ReturnType<OpenGateway["reload"]>;
  /** Ends everything; throws if the books are wrong, or money is still held. */
  close(): Promise<void>;
}

export interface CustomerOptions {
  /** Nano-USD. Default 100 USD. */
  readonly balanceNanos?: bigint;
  /** Models that the key may use. Default: all. */
  readonly models?: readonly string[];
  /** The most that the key may spend, in nano-USD. Default: no limit. */
  readonly keyLimitNanos?: bigint;
}

export interface Customer {
  readonly accountId: string;
  readonly keyId: string;
  /** The secret. */
  readonly key: string;
}

export interface Money {
  readonly balance: bigint;
  readonly held: bigint;
  readonly available: bigint;
}

/** 0.25 and 2.00 USD per 1 M tokens, 0.025 for cached ones. */
export const priceDefault: PriceConfig = {
  input: 250_000_000n,
  cachedInput: 25_000_000n,
  cacheWrite: 250_000_000n,
  output: 2_000_000_000n,
  image: undefined,
  second: undefined,
  request: undefined,
};

/** Model name that customers of the default gateway use. */
export const publicModel = "public-model";

/** Starts a gateway on free ports, with a separate database. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const database = options.database ?? (await createTestDatabase());
  const log: string[] = [];
  const dataDir = mkdtempSync(join(tmpdir(), "uas-gateway-"));
  let config = configOf(options);
  const app = await openGateway({
    readConfig: () => Promise.resolve(config),
    settings: {
      configPath: undefined,
      dataDir,
      listen: { host: "127.0.0.1", port: 0 },
      internalListen: { host: "127.0.0.1", port: 0 },
      databaseUrl: (await options.databaseAt?.(database.url)) ?? database.url,
      publicUrl: undefined,
      consoleUrl: undefined,
      trustProxy: [],
      masterKey: Buffer.alloc(32, 1),
      operatorToken: undefined,
      workers: 1,
      watchesConfig: false,
      maxConcurrentCalls: 1_000,
      drainDelayMs: 0,
      ...options.settings,
    },
    config,
    ...(options.clock && { clock: options.clock }),
    ...(options.taskTimings && { taskTimings: options.taskTimings }),
    log: pino({ level: "trace" }, { write: (line: string) => void log.push(line) }),
  });
  const { publicUrl, internalUrl } = await app.listen();
  const billing = createClient(BillingService, app.transport);
  const callLog = createClient(CallService, app.transport);
  const calls = async (requestId: string, count: number): Promise<RecordedCall[]> => {
    // A call is recorded when it is settled, which is after its reply: the only thing worth waiting
    // for.
    for (
      const end = Date.now() + 30_000;
      ;
      await new Promise((resolve) => setTimeout(resolve, 5))
    ) {
      const found = (await callLog.listCalls({ filter: { requestId }, pageSize: 1_000 })).calls;
      if (found.length >= count) return found.map(recordedCall);
      if (Date.now() > end) {
        const warnings = log.filter((line) => /"level":[4-6]0/.test(line)).join("");
        throw new Error(`${found.length} of ${count} calls by ${requestId}; ${warnings}`);
      }
    }
  };
  return {
    url: publicUrl.replace(/\/$/, ""),
    internalUrl,
    dataDir,
    app,
    databaseUrl: database.url,
    accounts: createClient(AccountService, app.transport),
    keys: createClient(KeyService, app.transport),
    billing,
    callLog,
    log,
    calls,
    async call(requestId) {
      const [newest] = await calls(requestId, 1);
      if (newest === undefined) throw new Error("unreachable");
      return newest;
    },
    customer: (wanted = {}) => createCustomer(app, wanted),
    money: (accountId) => moneyOf(billing, accountId),
    reconfigure(change) {
      config = configOf({ ...options, ...change });
      return app.reload();
    },
    async close() {
      try {
        await expectCleanBooks(database.url);
      } finally {
        await app.close();
        await database.close();
        rmSync(dataDir, { recursive: true, force: true });
      }
    },
  };
}

async function createCustomer(
  app: OpenGateway,
  { balanceNanos = 100_000_000_000n, models = [], keyLimitNanos }: CustomerOptions,
): Promise<Customer> {
  const accounts = createClient(AccountService, app.transport);
  const { account } = await accounts.createAccount({ name: "test" });
  const accountId = account?.accountId ?? "";
  if (balanceNanos > 0n) {
    const amount = { currencyCode: "USD", amountNanos: balanceNanos };
    const billing = createClient(BillingService, app.transport);
    await billing.topUp({ accountId, amount, reference: "test" });
  }
  const keys = createClient(KeyService, app.transport);
  const limit =
    keyLimitNanos === undefined
      ? {}
      : { spendLimit: { currencyCode: "USD", amountNanos: keyLimitNanos } };
  const wanted = { accountId, name: "test", models: [...models], ...limit };
  const created = await keys.createKey(wanted);
  return { accountId, keyId: created.key?.keyId ?? "", key: created.secret };
}

function recordedCall(call: CallRecord): RecordedCall {
  const attempts = call.attempts.map((each) => ({
    ...each,
    errorCode: errorWord(each.errorCode),
  }));
  return { ...call, errorCode: errorWord(call.errorCode), attempts };
}

async function moneyOf(billing: Client<typeof BillingService>, accountId: string): Promise<Money> {
  const { balance } = await billing.getBalance({ accountId });
  return {
    balance: balance?.balance?.amountNanos ?? -1n,
    held: balance?.held?.amountNanos ?? -1n,
    available: balance?.available?.amountNanos ?? -1n,
  };
}

/**
 * No rule of the books is broken, and no call has left its hold open (R-MON-2, R-MON-6). Looked up
 * in the database itself: the gateway may have stopped, or lost its way there.
 */
async function expectCleanBooks(url: string): Promise<void> {
  const pool = new Pool({ connectionString: url, max: 2 });
  try {
    for (
      const end = Date.now() + 30_000;
      ;
      await new Promise((resolve) => setTimeout(resolve, 10))
    ) {
      const { rows } = await pool.query<{ held: string }>(
        "select coalesce(sum(held), 0)::text as held from balance",
      );
      if (rows[0]?.held === "0") break;
      if (Date.now() > end) throw new Error(`a hold is open: ${rows[0]?.held} nano-USD`);
    }
    const findings = await auditLedger(pool);
    if (findings.length > 0) {
      throw new Error(findings.map(({ rule, detail }) => `${rule}: ${detail}`).join("\n"));
    }
  } finally {
    await pool.end();
  }
}

function configOf(options: GatewayOptions): Config {
  const { vendors, models } = options;
  const [first = ""] = Object.keys(vendors);
  return {
    source: "test",
    document: "",
    hash: "",
    isDemo: false,
    vendors: new Map(
      Object.entries(vendors).map(([name, vendor]) => [name, vendorOf(name, vendor)]),
    ),
    models: new Map(
      Object.entries(models ?? { [publicModel]: {} }).map(([key, model]) => [
        key,
        modelOf(key, model, first),
      ]),
    ),
    ...(options.cors && { cors: options.cors }),
    ...(options.priceLists && { priceLists: options.priceLists }),
    webhooks: options.webhooks ?? { allowHosts: [], caFile: undefined },
    smtp: undefined,
    limits: options.limits ?? {},
    console: { signUp: true, copyAgain: true, ...options.console },
    sms: options.sms,
    storage: options.storage ?? { kind: "local" },
    warnings: [],
  };
}

function vendorOf(name: string, vendor: TestVendor): VendorConfig {
  return {
    name,
    kind: "openai-compatible",
    apiKey: undefined,
    dialects: undefined,
    timeouts: { connectMs: 2_000, firstByteMs: 5_000, idleMs: 5_000 },
    maxInFlight: undefined,
    pollsPerSecond: undefined,
    onDisconnect: "abort",
    nativePrefix: undefined,
    runBaseUrl: undefined,
    ...vendor,
  };
}

/** A price that counts always. */
export function always(price: PriceConfig): ModelConfig["prices"] {
  return [{ fromMs: -Infinity, price }];
}

function modelOf(
  key: string,
  { price = priceDefault, ...model }: TestModel,
  firstVendor: string,
): ModelConfig {
  return {
    key,
    name: key,
    type: ModelType.TEXT,
    routes: [{ vendor: firstVendor, model: "vendor-model" }],
    maxOutputTokens: 4_096,
    holdOutputTokens: Math.min(2_048, model.maxOutputTokens ?? 4_096),
    prices: always(price),
    // A test of one vendor's failures sees each of them.
    ...((model.routes?.length ?? 1) === 1 && { retry: { attempts: 1, withinMs: 1 } }),
    ...model,
  };
}
