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
import type { ListenUrls } from "./worker-messages.ts";

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
  /** Starts to listen. */
  readonly listen: () => Promise<ListenUrls>;
}

/**
 * Starts to listen, prints the welcome and logs a line. On a new demo it creates an account and a
 * key, which a port in use would lose if it did so earlier. Otherwise everything is read before, so
 * that the welcome is printed before the first request is served.
 */
export async function announce(services: Services, options: WelcomeOptions): Promise<void> {
  const { settings, config, log, output, listen } = options;
  const facts = await readFacts(services, config);
  const urls = await listen();
  const url = settings.publicUrl ?? urls.publicUrl;
  const places = { listenUrl: urls.publicUrl, url, consoleUrl: settings.consoleUrl ?? url };
  const lines = facts.isNewDemo
    ? await firstCall(services, facts, places)
    : nextSteps(facts, places);
  output.write(`\n${lines.join("\n")}\n\n`);
  const { workers } = settings;
  const fields = { listenUrl: urls.publicUrl, internalUrl: urls.internalUrl };
  const more = { publicUrl: settings.publicUrl, config: config.source, configHash: config.hash };
  log.info({ ...fields, ...more, ...(workers > 1 && { workers }) }, "listening");
  warnOfShownCodes(options);
}

/** Facts that decide what the welcome says. */
interface Facts {
  readonly hasAccounts: boolean;
  readonly isNewDemo: boolean;
  /** Undefined if the pages of the console are missing. */
  readonly access: ConsoleAccess | undefined;
}

/**
 * The operator's access to the console: a password, a sign-in link of the demo, or a command that
 * makes a link. Only the demo prints a credential, since output is often stored.
 */
type ConsoleAccess =
  | { readonly kind: "password" | "command" }
  | { readonly kind: "link"; readonly token: string };

async function readFacts(services: Services, { isDemo }: Config): Promise<Facts> {
  const client = createClient(AccountService, services.transport);
  const { accounts } = await client.listAccounts({ pageSize: 1 });
  const hasAccounts = accounts.length > 0;
  const isNewDemo = isDemo && !hasAccounts;
  const access = (await canServePages())
    ? await readAccess(services, isDemo && hasAccounts)
    : undefined;
  return { hasAccounts, isNewDemo, access };
}

/** @param hasLink whether a link is created */
async function readAccess(
  { signIn, transport }: Services,
  hasLink: boolean,
): Promise<ConsoleAccess> {
  if (await signIn.hasOperator()) return { kind: "password" };
  return hasLink ? createLink(transport) : { kind: "command" };
}

/** @param accountId the operator's account. Default: an existing one */
async function createLink(transport: Transport, accountId = ""): Promise<ConsoleAccess> {
  const { token } = await createClient(UserService, transport).createSignInLink({ accountId });
  return { kind: "link", token };
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
interface Places {
  /** The address on which it listens. */
  readonly listenUrl: string;
  /** The address at which customers reach it. */
  readonly url: string;
  readonly consoleUrl: string;
}

function nextSteps({ hasAccounts, access }: Facts, places: Places): readonly string[] {
  const create = `${command} key create --account ID`;
  const steps = hasAccounts
    ? [`  API keys  ${create}`]
    : [
        "  There is no account yet. Create one, and a key:",
        `    ${command} account create --name NAME --balance 10.00`,
        `    ${create}`,
      ];
  return [...addressLines(places), ...steps, ...consoleLines(access, places)];
}

function addressLines({ listenUrl, url }: Places): readonly string[] {
  return [`UAS Gateway listens on ${listenUrl}`, `  Base URL  ${url}/v1`];
}

function consoleLines(access: Facts["access"], { consoleUrl }: Places): readonly string[] {
  if (access === undefined) {
    return ["  Console   has no pages yet: stop, run `npm ci && npm run console`, and start again"];
  }
  if (access.kind === "link") {
    return [
      `  Console   ${consoleUrl}/console/welcome#${access.token}`,
      `            (signs you in once, within an hour; ${command} console link creates another)`,
    ];
  }
  return [
    `  Console   ${access.kind === "password" ? `${consoleUrl}/console` : `${command} console link`}`,
  ];
}

/** The first start of the demo: an account with a key, and a call that can be pasted. */
async function firstCall(
  { transport }: Services,
  { access }: Facts,
  places: Places,
): Promise<readonly string[]> {
  const { accountId, key } = await createDevAccount(transport);
  const link = access?.kind === "command" ? await createLink(transport, accountId) : access;
  return [
    ...addressLines(places),
    "  Account   dev, with a demo balance of 10 USD",
    `  API key   ${key}`,
    `            (shown once; ${command} key create creates another)`,
    ...consoleLines(link, places),
    "",
    "  Try it:",
    `    curl ${places.url}/v1/chat/completions \\`,
    `      -H "authorization: Bearer ${key}" \\`,
    '      -H "content-type: application/json" \\',
    `      -d '{"model":"demo-chat","messages":[{"role":"user","content":"Hello"}]}'`,
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
