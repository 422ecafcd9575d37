/** The life of a server process: start, say where it is, wait for a signal, drain, end. */
import type { Transport } from "@connectrpc/connect";
import { createClient } from "@connectrpc/connect";
import { AccountService } from "../gen/uas/account/v1/account_service_pb.ts";
import { TopUpSource } from "../gen/uas/billing/v1/billing_pb.ts";
import { UserService } from "../gen/uas/account/v1/user_service_pb.ts";
import { BillingService } from "../gen/uas/billing/v1/billing_service_pb.ts";
import { KeyService } from "../gen/uas/key/v1/key_service_pb.ts";
import { type App, buildApp } from "./app.ts";
import type { Logger } from "pino";
import type { Config, Settings } from "./config/config.ts";
import { buildPages, canServePages, NoBuilder, readPages } from "./console/built.ts";
import type { Pages } from "./console/serve.ts";
import { limitGarbage } from "./garbage.ts";
import { createLog } from "./log.ts";
import { nanosPerUsd } from "./money.ts";

export interface ServeOptions {
  readonly settings: Settings;
  readonly config: Config;
}

/** Runs a gateway until SIGTERM or SIGINT; resolves when it has drained. A second signal ends at once. */
export async function serve({ settings, config }: ServeOptions): Promise<void> {
  limitGarbage();
  const signal = firstSignal();
  const stopping = new AbortController();
  const logging = createLog({ secrets: secretsOf(settings, config) });
  const { log } = logging;
  try {
    const pages = openPages(log, stopping.signal);
    const app = await buildApp({ settings, config, log, pages });
    try {
      const urls = await app.listen();
      await welcome(app, { config, url: settings.publicUrl ?? urls.publicUrl });
      log.info({ ...urls, config: config.source }, "listening");
      warnOfShownCodes(log, { settings, config });
      log.info({ signal: await signal }, "draining");
    } finally {
      stopping.abort();
      await app.close();
    }
    log.info("stopped");
  } finally {
    logging.flush();
  }
}

/** What is said where there are no pages: for `npm ci --omit=dev`. */
const noBuilderText =
  "the console has no pages, and their builder is not installed: run `npm ci && npm run console`, then `npm prune --omit=dev` if you like, and start again; calls are served";

/** The console's pages, built while the gateway already serves calls where they are not there yet. */
async function openPages(log: Logger, signal: AbortSignal): Promise<Pages | undefined> {
  try {
    return await readPages(await buildPages(signal));
  } catch (error) {
    if (error instanceof NoBuilder) log.warn(noBuilderText);
    else if (!signal.aborted) log.error({ err: error }, "the console cannot be served");
    return undefined;
  }
}

/** Where codes are shown to whoever asks for them, nobody else should be able to ask. */
function warnOfShownCodes(log: Logger, { settings, config }: ServeOptions): void {
  const { host } = settings.listen;
  const isLocal = ["127.0.0.1", "::1", "localhost"].includes(host);
  if (config.sms?.provider !== "console" || (isLocal && settings.publicUrl === undefined)) return;
  const text =
    "sms: { provider: console } shows codes to whoever asks, so anybody who reaches this gateway can sign in with any number: configure another provider";
  log.warn({ host }, text);
}

/** Signals that follow the first within this time are its echo, in milliseconds: Ctrl-C under npm comes
 * twice, from the terminal and from npm. */
const echoMs = 300;

/** Resolves with the first signal; a second one, be it the same or the other, ends the process. */
function firstSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let firstMs: number | undefined;
    const onSignal = (signal: NodeJS.Signals): void => {
      if (firstMs !== undefined && performance.now() - firstMs > echoMs) process.exit(1);
      firstMs ??= performance.now();
      resolve(signal);
    };
    process.on("SIGTERM", onSignal);
    process.on("SIGINT", onSignal);
  });
}

function secretsOf(settings: Settings, { vendors, storage, sms }: Config): string[] {
  const { operatorToken, databaseUrl, masterKey } = settings;
  const keys = [...vendors.values()].map((vendor) => vendor.apiKey);
  const all = [
    masterKey?.toString("base64"),
    operatorToken,
    ...passwordsOf(databaseUrl ?? ""),
    ...keys,
    ...(storage.kind === "s3" ? [storage.accessKeyId, storage.secretAccessKey] : []),
    ...smsSecretsOf(sms),
  ];
  return all.filter((secret) => secret !== undefined);
}

function smsSecretsOf(sms: Config["sms"]): (string | undefined)[] {
  if (sms?.provider === "http") return [sms.token];
  if (sms?.provider === "twilio") return [sms.authToken];
  return sms?.provider === "aliyun" ? [sms.accessKeyId, sms.accessKeySecret] : [];
}

/** The password of a database's address, as it is written there and as it is meant. */
function passwordsOf(databaseUrl: string): string[] {
  const password = URL.parse(databaseUrl)?.password ?? "";
  try {
    return [password, decodeURIComponent(password)];
  } catch {
    return [password];
  }
}

/** What the demo account may spend. */
const demoBalanceNanos = 10n * nanosPerUsd;

/** Tells a person what to do next; on a fresh demo, with an account and a key to do it with. */
async function welcome(app: App, { config, url }: { config: Config; url: string }): Promise<void> {
  const { transport } = app;
  const accounts = createClient(AccountService, transport);
  const { accounts: found } = await accounts.listAccounts({ pageSize: 1 });
  if (found.length > 0) {
    say([
      "",
      `UAS Gateway listens on ${url}`,
      `  Base URL  ${url}/v1`,
      "  API keys  npx uas key create --account ID",
      ...(await consoleLines(app, { config, url, accountId: "" })),
      "",
    ]);
  } else if (config.isDemo) {
    const { accountId, key } = await createDevAccount(transport);
    say(firstCall(url, key, await consoleLines(app, { config, url, accountId })));
  } else {
    say([
      "",
      `UAS Gateway listens on ${url}`,
      "  There is no account yet. Create one, and a key:",
      "    npx uas account create --name NAME --balance 10.00",
      "    npx uas key create --account ID",
      ...(await consoleLines(app, { config, url, accountId: "" })),
      "",
    ]);
  }
}

/**
 * How the operator gets into the console: on a demo, until there is a password, by a link. Elsewhere nothing is printed
 * that lets anybody in, for what is printed is often kept.
 */
async function consoleLines(
  { signIn, transport }: App,
  { config, url, accountId }: { config: Config; url: string; accountId: string },
): Promise<string[]> {
  if (!(await canServePages())) {
    return ["  Console   has no pages yet: stop, run `npm ci && npm run console`, and start again"];
  }
  if (await signIn.hasOperator()) return [`  Console   ${url}/console`];
  if (!config.isDemo) return ["  Console   npx uas console link"];
  const { token } = await createClient(UserService, transport).createSignInLink({ accountId });
  return [
    `  Console   ${url}/console/welcome#${token}`,
    "            (signs you in once, within an hour; `npx uas console link` makes another)",
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
    "            (shown once; `npx uas key create` makes another)",
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

function say(lines: readonly string[]): void {
  process.stdout.write(`${lines.join("\n")}\n`);
}
