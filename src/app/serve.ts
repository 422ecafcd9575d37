/**
 * The life of a server: start, announce, wait for a signal, drain, end. With several workers, this process
 * supervises them.
 */
import { createClient, type Transport } from "@connectrpc/connect";
import type { Logger } from "pino";
import { AccountService } from "../../gen/uas/account/v1/account_service_pb.ts";
import { UserService } from "../../gen/uas/account/v1/user_service_pb.ts";
import { TopUpSource } from "../../gen/uas/billing/v1/billing_pb.ts";
import { BillingService } from "../../gen/uas/billing/v1/billing_service_pb.ts";
import { KeyService } from "../../gen/uas/key/v1/key_service_pb.ts";
import type { SignIn } from "../account/module.ts";
import type { Config, Settings } from "../config/config.ts";
import { canServePages } from "./built-pages.ts";
import { LogOutput } from "../observe/log-output.ts";
import { nanosPerUsd } from "../core/money.ts";
import { type Embedded, startEmbedded } from "../db/embedded/embedded.ts";
import { createServerLog } from "./process-log.ts";
import { Supervisor } from "./supervisor.ts";
import { setV8Flags } from "./v8-flags.ts";
import { receiveStop } from "./stop-signals.ts";
import { openBackend } from "./backend.ts";
import { findPages, openPages } from "./pages.ts";

/** Settings and configuration of this installation. */
interface ServeOptions {
  readonly settings: Settings;
  readonly config: Config;
  /** Reads the configuration again, for SIGHUP. @throws where it is faulty */
  readonly readConfig: () => Promise<Config>;
}

/**
 * Runs a gateway until SIGTERM, SIGINT or SIGHUP. Resolves when it has drained. A second SIGTERM or SIGINT ends the
 * process without a drain. With several workers SIGHUP replaces them instead, unless it says that the terminal was
 * closed.
 */
export async function serve(options: ServeOptions): Promise<void> {
  setV8Flags();
  const output = new LogOutput();
  try {
    await (options.settings.workers > 1 ? supervise : serveAlone)(options, output);
  } finally {
    await output.flush();
  }
}

/** Serves in this process, which has no workers. */
async function serveAlone(options: ServeOptions, output: LogOutput): Promise<void> {
  const logging = createServerLog(options, { output });
  const { log } = logging;
  const database = startDatabase(options, log);
  const signal = receiveStop({ onSecond: () => stopDatabase(database) });
  try {
    try {
      await serveUntil(signal, { ...options, log, output, embeddedUrl: (await database)?.url });
    } finally {
      await stopDatabase(database);
    }
    log.info("stopped");
  } finally {
    await logging.flush();
  }
}

/** Serves until the signal, then drains. */
async function serveUntil(
  signal: Promise<NodeJS.Signals>,
  options: ServeOptions &
    Pick<WelcomeOptions, "log" | "output"> & { readonly embeddedUrl: string | undefined },
): Promise<void> {
  const { log } = options;
  const { drainDelayMs: delayMs } = options.settings;
  const stopping = new AbortController();
  const pages = openPages(log, stopping.signal);
  // Not at the top: a supervisor serves no calls, so it does without this part of the program.
  const { openGateway } = await import("./gateway.ts");
  const gateway = await openGateway({
    settings: options.settings,
    config: options.config,
    embeddedUrl: options.embeddedUrl,
    log,
    pages,
  });
  try {
    await announce(gateway, { ...options, urls: await gateway.listen() });
    log.info({ signal: await signal, delayMs }, "stopping");
    await gateway.close({ delayMs });
  } finally {
    stopping.abort();
    await gateway.close();
  }
}

/** Database connections besides those of workers: command lines and the supervisor. */
const otherConnections = 20;

/** Most connections that one worker opens, rounded up. While workers are replaced there is one more of them. */
const workerConnections = 45;

/**
 * Runs several workers until SIGTERM or SIGINT. Resolves when all have drained. A second one kills them.
 *
 * @throws the first failure at start, or where a worker exited while draining
 */
async function supervise(options: ServeOptions, output: LogOutput): Promise<void> {
  const { settings, config } = options;
  const write = (lines: string): void => output.write(lines);
  const { log } = createServerLog(options, { sink: { write } });
  let workers: Supervisor | undefined;
  const database = startDatabase(options, log);
  const signal = receiveStop({
    onSecond: () => {
      workers?.kill();
      return stopDatabase(database);
    },
    ...(!hasTerminal() && { onHangUp: () => void workers?.restart(options.readConfig) }),
  });
  const stopping = new AbortController();
  try {
    const pages = findPages(log, stopping.signal);
    const order = { settings, config, embeddedUrl: (await database)?.url };
    workers = new Supervisor({ order, pages, log, write });
    try {
      await start(workers, { ...order, log, output });
      log.info({ signal: await signal, delayMs: settings.drainDelayMs }, "stopping");
    } finally {
      stopping.abort();
      await workers.stop();
    }
  } finally {
    await stopDatabase(database);
  }
  log.info("stopped");
}

/** Whether a closed terminal, not an operator, may be what sends SIGHUP. */
function hasTerminal(): boolean {
  return process.stdin.isTTY || process.stdout.isTTY;
}

/** Migrates the schema, starts the workers, and announces the gateway. */
async function start(
  workers: Supervisor,
  options: WorkerOptions &
    Pick<WelcomeOptions, "log" | "output"> & { readonly embeddedUrl: string | undefined },
): Promise<void> {
  const backend = await openBackend(options);
  try {
    await announce(backend, { ...options, urls: await workers.start() });
  } finally {
    await backend.close();
  }
}

/** Settings and configuration of all workers. */
type WorkerOptions = Omit<ServeOptions, "readConfig">;

/** Starts the embedded PostgreSQL, with connections for all processes, where no other database is configured. */
async function startDatabase(
  { settings: { databaseUrl, dataDir, workers } }: WorkerOptions,
  log: Logger,
): Promise<Embedded | undefined> {
  if (databaseUrl !== undefined) return undefined;
  const connections = Math.max(100, otherConnections + workerConnections * (workers + 1));
  const lines = { info: (line: string) => log.info(line), warn: (line: string) => log.warn(line) };
  return startEmbedded({ dataDir, log: lines, connections });
}

/** Leaves the embedded PostgreSQL once it has started: the last process to leave stops it. */
async function stopDatabase(starting: Promise<Embedded | undefined>): Promise<void> {
  const embedded = await starting.catch(() => undefined);
  await embedded?.stop();
}

// Announces that the gateway serves: next steps for a person, the addresses for the log.

/** Services that the welcome calls. */
interface Services {
  /** Calls as the operator. */
  readonly transport: Transport;
  readonly signIn: SignIn;
}

/** Facts and outputs of the welcome. */
interface WelcomeOptions {
  readonly settings: Settings;
  readonly config: Config;
  readonly log: Logger;
  /** Gets the welcome. */
  readonly output: LogOutput;
  readonly urls: { readonly publicUrl: string; readonly internalUrl: string };
}

/** Prints the welcome and logs a line. On a new demo it creates an account and a key. */
async function announce(services: Services, options: WelcomeOptions): Promise<void> {
  const { settings, config, log, output, urls } = options;
  const url = settings.publicUrl ?? urls.publicUrl;
  const consoleUrl = settings.consoleUrl ?? url;
  const lines = await welcome(services, { config, url, consoleUrl });
  output.write(`${lines.join("\n")}\n`);
  const { workers } = settings;
  log.info({ ...urls, config: config.source, ...(workers > 1 && { workers }) }, "listening");
  warnOfShownCodes(options);
}

/** Warns where sign-in codes are shown to whoever requests them: then nobody else should reach the gateway. */
function warnOfShownCodes({ settings, config, log }: WelcomeOptions): void {
  const { host } = settings.listen;
  const isLocal = ["127.0.0.1", "::1", "localhost"].includes(host);
  const isPublic = (settings.publicUrl ?? settings.consoleUrl) !== undefined;
  if (config.sms?.provider !== "console" || (isLocal && !isPublic)) return;
  const text =
    "sms: { provider: console } shows codes to whoever asks, so anybody who reaches this gateway can sign in with any number: configure another provider";
  log.warn({ host }, text);
}

/** Balance of the demo account. */
const demoBalanceNanos = 10n * nanosPerUsd;

/** Where the gateway and its console are reached. */
interface Addresses {
  readonly config: Config;
  readonly url: string;
  readonly consoleUrl: string;
}

async function welcome(
  services: Services,
  { config, url, consoleUrl }: Addresses,
): Promise<string[]> {
  const { transport } = services;
  const accounts = createClient(AccountService, transport);
  const { accounts: found } = await accounts.listAccounts({ pageSize: 1 });
  if (found.length > 0) {
    return [
      "",
      `UAS Gateway listens on ${url}`,
      `  Base URL  ${url}/v1`,
      "  API keys  npx uas key create --account ID",
      ...(await consoleLines(services, { config, consoleUrl, accountId: "" })),
      "",
    ];
  }
  if (config.isDemo) {
    const { accountId, key } = await createDevAccount(transport);
    return firstCall(url, key, await consoleLines(services, { config, consoleUrl, accountId }));
  }
  return [
    "",
    `UAS Gateway listens on ${url}`,
    "  There is no account yet. Create one, and a key:",
    "    npx uas account create --name NAME --balance 10.00",
    "    npx uas key create --account ID",
    ...(await consoleLines(services, { config, consoleUrl, accountId: "" })),
    "",
  ];
}

/**
 * How the operator enters the console: on a demo without a password, by a link. Otherwise no credential is printed,
 * since output is often kept.
 */
async function consoleLines(
  { signIn, transport }: Services,
  { config, consoleUrl, accountId }: Omit<Addresses, "url"> & { readonly accountId: string },
): Promise<string[]> {
  if (!(await canServePages())) {
    return ["  Console   has no pages yet: stop, run `npm ci && npm run console`, and start again"];
  }
  if (await signIn.hasOperator()) return [`  Console   ${consoleUrl}/console`];
  if (!config.isDemo) return ["  Console   npx uas console link"];
  const { token } = await createClient(UserService, transport).createSignInLink({ accountId });
  return [
    `  Console   ${consoleUrl}/console/welcome#${token}`,
    "            (signs you in once, within an hour; `npx uas console link` creates another)",
  ];
}

async function createDevAccount(
  transport: Transport,
): Promise<{ readonly accountId: string; readonly key: string }> {
  const { account } = await createClient(AccountService, transport).createAccount({ name: "dev" });
  const accountId = account?.accountId ?? "";
  await createClient(BillingService, transport).topUp({
    accountId,
    amount: { currencyCode: "USD", amountNanos: demoBalanceNanos },
    reference: `account-create:${accountId}`,
    source: TopUpSource.PROMO,
  });
  const keys = createClient(KeyService, transport);
  const { secret: key } = await keys.createKey({ accountId, name: "first key" });
  return { accountId, key };
}

function firstCall(url: string, key: string, consoleLink: readonly string[]): string[] {
  return [
    "",
    `UAS Gateway listens on ${url}`,
    "  Account   dev, with a demo balance of 10 USD",
    `  Base URL  ${url}/v1`,
    `  API key   ${key}`,
    "            (shown once; `npx uas key create` creates another)",
    ...consoleLink,
    "",
    "  Try it:",
    `    curl ${url}/v1/chat/completions \\`,
    `      -H "authorization: Bearer ${key}" \\`,
    '      -H "content-type: application/json" \\',
    `      -d '{"model":"demo-chat","messages":[{"role":"user","content":"Hello"}]}'`,
    "",
  ];
}
