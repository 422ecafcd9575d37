/** Announces that the gateway serves: next steps for a person, the addresses for the log. */
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
import { command } from "../core/package.ts";

/** Services that the welcome calls. */
interface Services {
  /** Calls as the operator. */
  readonly transport: Transport;
  readonly signIn: SignIn;
}

/** Facts and outputs of the welcome. */
export interface WelcomeOptions {
  readonly settings: Settings;
  readonly config: Config;
  readonly log: Logger;
  /** Gets the welcome. */
  readonly output: LogOutput;
  readonly urls: { readonly publicUrl: string; readonly internalUrl: string };
}

/** Prints the welcome and logs a line. On a new demo it creates an account and a key. */
export async function announce(services: Services, options: WelcomeOptions): Promise<void> {
  const { settings, config, log, output, urls } = options;
  const url = settings.publicUrl ?? urls.publicUrl;
  const consoleUrl = settings.consoleUrl ?? url;
  const lines = await welcome(services, { config, url, consoleUrl });
  output.write(`${lines.join("\n")}\n`);
  const { workers } = settings;
  log.info({ ...urls, config: config.source, ...(workers > 1 && { workers }) }, "listening");
  warnOfShownCodes(options);
}

/**
 * Warns if sign-in codes are shown to every client that requests them: then the gateway should be
 * reachable for developers only.
 */
function warnOfShownCodes({ settings, config, log }: WelcomeOptions): void {
  const { host } = settings.listen;
  const isLocal = ["127.0.0.1", "::1", "localhost"].includes(host);
  const isPublic = (settings.publicUrl ?? settings.consoleUrl) !== undefined;
  if (config.sms?.provider !== "console" || (isLocal && !isPublic)) return;
  const text =
    "sms: { provider: console } shows codes to every client that requests them, so everyone who reaches this gateway can sign in with any number: configure another provider";
  log.warn({ host }, text);
}

/** Balance of the demo account. */
const demoBalanceNanos = 10n * nanosPerUsd;

/** The addresses of the gateway and its console. */
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
      `  API keys  ${command} key create --account ID`,
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
    `    ${command} account create --name NAME --balance 10.00`,
    `    ${command} key create --account ID`,
    ...(await consoleLines(services, { config, consoleUrl, accountId: "" })),
    "",
  ];
}

/**
 * The operator's access to the console: on a demo without a password, by a link. Otherwise no
 * credential is printed, since output is often stored.
 */
async function consoleLines(
  { signIn, transport }: Services,
  { config, consoleUrl, accountId }: Omit<Addresses, "url"> & { readonly accountId: string },
): Promise<string[]> {
  if (!(await canServePages())) {
    return ["  Console   has no pages yet: stop, run `npm ci && npm run console`, and start again"];
  }
  if (await signIn.hasOperator()) return [`  Console   ${consoleUrl}/console`];
  if (!config.isDemo) return [`  Console   ${command} console link`];
  const { token } = await createClient(UserService, transport).createSignInLink({ accountId });
  return [
    `  Console   ${consoleUrl}/console/welcome#${token}`,
    `            (signs you in once, within an hour; ${command} console link creates another)`,
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
    `            (shown once; ${command} key create creates another)`,
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
