/** `uas account …`. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Duration, durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import { createClient, type Transport } from "@connectrpc/connect";
import { type Command, InvalidArgumentError } from "commander";
import {
  type Account,
  type AccountSchema,
  AccountStateSchema,
} from "../../gen/uas/account/v1/account_pb.ts";
import { AccountService } from "../../gen/uas/account/v1/account_service_pb.ts";
import { type Balance, TopUpSource } from "../../gen/uas/billing/v1/billing_pb.ts";
import { BillingService } from "../../gen/uas/billing/v1/billing_service_pb.ts";
import { CallService } from "../../gen/uas/billing/v1/call_service_pb.ts";
import type { Money } from "../../gen/uas/type/v1/money_pb.ts";
import { failureMessage } from "../core/error-words.ts";
import { isUuid } from "../core/uuid.ts";
import { command } from "../core/package.ts";
import { withBackend } from "./backend.ts";
import type { CliTools, Output } from "./context.ts";
import { CliError } from "./failure.ts";
import { addLimitOptions, changedLimits, type LimitOptions, limitTerms } from "./limits.ts";
import { cell, everyPage, facts, table } from "./output.ts";
import {
  enumWord,
  listArgument,
  orNull,
  orWord,
  percentArgument,
  percentText,
  signedUsdArgument,
  timeText,
  usdArgument,
  usdText,
} from "./values.ts";

/** Adds the commands. */
export function addAccountCommands(account: Command, { context, print }: CliTools): void {
  account
    .command("create")
    .description("create an account, optionally with a balance")
    .requiredOption("--name <name>", "display name")
    .option("--balance <usd>", "balance to grant, in US dollars such as 10.00", usdArgument)
    .action(async (options: { name: string; balance?: Money }) => {
      print(await withBackend(context, ({ transport }) => createAccount(transport, options)));
    });
  account
    .command("show")
    .description("show an account, its balance and its limits")
    .argument("<account>", "account id")
    .action(async (accountId: string) => {
      print(await withBackend(context, ({ transport }) => showAccount(transport, accountId)));
    });
  account
    .command("list")
    .description("list accounts, newest first")
    .action(async () => {
      print(await withBackend(context, ({ transport }) => listAccounts(transport)));
    });
  addAccountChanges(account, { context, print });
  addAdjust(account, { context, print });
}

async function createAccount(
  transport: Transport,
  { name, balance }: { readonly name: string; readonly balance?: Money },
): Promise<Output> {
  const response = await createClient(AccountService, transport).createAccount({ name });
  const accountId = response.account?.accountId ?? "";
  if (balance !== undefined && balance.amountNanos > 0n) {
    const reference = `account-create:${accountId}`;
    try {
      // This amount is a gift. Payments are booked by `uas topup`, each with a reference.
      const request = { accountId, amount: balance, reference, source: TopUpSource.PROMO };
      await createClient(BillingService, transport).topUp(request);
    } catch (error) {
      const retry = `${command} topup ${accountId} ${usdText(balance)} --reference ${reference} --promo`;
      const message = `account ${accountId} was created, but not credited: ${failureMessage(error)}; retry with: ${retry}`;
      throw new CliError(message, { cause: error });
    }
  }
  const hint = `Next, create a key: ${command} key create --account ${accountId}`;
  return { json: { accountId }, text: `${facts({ accountId })}\n\n${hint}` };
}

async function showAccount(transport: Transport, accountId: string): Promise<Output> {
  const [{ account }, { balance }] = await Promise.all([
    // Only this request fails for an unknown account: without ledger entries, a balance is zero.
    createClient(AccountService, transport).getAccount({ accountId }),
    createClient(BillingService, transport).getBalance({ accountId }),
  ]);
  const createdAt = timeText(account?.createTime);
  const known = { accountId, name: account?.name ?? "", createdAt };
  const json = { ...known, ...balanceJson(balance), ...accountTerms(account) };
  return { json, text: facts(json) };
}

async function listAccounts(transport: Transport): Promise<Output> {
  const client = createClient(AccountService, transport);
  const accounts = await everyPage(Infinity, async (page) => {
    const response = await client.listAccounts(page);
    return { items: response.accounts, nextPageToken: response.nextPageToken };
  });
  const json = accounts.map((account) => ({
    accountId: account.accountId,
    name: account.name,
    createdAt: timeText(account.createTime),
    ...accountTerms(account),
  }));
  const rows = json.map(({ accountId, name, createdAt, state }) => [
    accountId,
    cell(state),
    cell(createdAt),
    name,
  ]);
  return { json, text: table(["ACCOUNT", "STATE", "CREATED", "NAME"], rows) };
}

/** Adds the commands that change an account. */
function addAccountChanges(account: Command, { context, print }: CliTools): void {
  const run = async (change: (transport: Transport) => Promise<Output>): Promise<void> =>
    print(await withBackend(context, ({ transport }) => change(transport)));
  account
    .command("suspend")
    .description(
      "refuse new calls with any key of an account; takes effect everywhere within a second",
    )
    .argument("<account>", "account id")
    .requiredOption("--reason <text>", "the reason; only operators see it")
    .action((accountId: string, { reason }: { reason: string }) =>
      run((transport) => suspend(transport, accountId, reason)),
    );
  account
    .command("resume")
    .description("accept calls with the keys of a suspended account again")
    .argument("<account>", "account id")
    .action((accountId: string) => run((transport) => resume(transport, accountId)));
  account
    .command("close")
    .description("disable the keys of an account and refuse its new calls; the balance stays")
    .argument("<account>", "account id")
    .action((accountId: string) =>
      run(async (to) =>
        shown((await createClient(AccountService, to).closeAccount({ accountId })).account),
      ),
    );
  account
    .command("erase")
    .description("delete the personal data of a closed account, without return; money stays")
    .argument("<account>", "account id")
    .option("--yes", "confirm")
    .action((accountId: string, { yes = false }: { yes?: boolean }) =>
      run((to) => erase(to, accountId, yes)),
    );
  account
    .command("discount")
    .description("set the discount of an account on all prices, from its next call on")
    .argument("<account>", "account id")
    .argument("<percent>", "0 to 100, such as 12.5", percentArgument)
    .action((accountId: string, discountBp: number) =>
      run((transport) => update(transport, { accountId, discountBp }, ["discount_bp"])),
    );
  account
    .command("price-list")
    .description("give an account the prices of a price list, from its next call on")
    .argument("<account>", "account id")
    .argument("<name>", "a name under price_lists, or none for the usual prices")
    .action((accountId: string, name: string) =>
      run((transport) =>
        update(transport, { accountId, priceList: name === "none" ? "" : name }, ["price_list"]),
      ),
    );
  account
    .command("alert")
    .description("set the low-balance alert of an account, and who gets alerts")
    .argument("<account>", "account id")
    .argument("[amount]", "US dollars such as 5.00, or off", orWord("off", usdArgument))
    .option(
      "--url <url>",
      "address that receives alerts as signed webhooks, or none",
      orWord("none", String),
    )
    .option(
      "--email <list>",
      "recipients of alerts by e-mail, separated by commas, or none",
      orWord("none", listArgument),
    )
    .action((accountId: string, amount: Money | false | undefined, options: AlertOptions) => {
      const { members, paths } = alertMembers(amount, options);
      return run((transport) => update(transport, { accountId, ...members }, paths));
    });
  const limit = account
    .command("limit")
    .description(
      "set budgets and rate limits of all keys of an account together; omitted options stay unchanged",
    )
    .argument("<account>", "account id");
  limit.option(
    "--wait <time>",
    "how long a call may wait for room instead of a 429, such as 5s; 0s: not at all; none: the default",
    orWord("none", waitArgument),
  );
  addLimitOptions(limit).action((accountId: string, options: AccountLimitOptions) => {
    return run((transport) => limitAccount(transport, accountId, options));
  });
}

/** Omitted members stay as they are; `false` clears one. */
interface AlertOptions {
  readonly url?: string | false;
  readonly email?: readonly string[] | false;
}

/** The members of an account that `account alert` changes, and their paths. @throws CliError */
function alertMembers(amount: Money | false | undefined, { url, email }: AlertOptions) {
  const paths = [
    ...(amount === undefined ? [] : ["low_balance_threshold"]),
    ...(url === undefined ? [] : ["alert_url"]),
    ...(email === undefined ? [] : ["alert_emails"]),
  ];
  if (paths.length === 0) {
    throw new CliError("nothing to change: see uas account alert --help");
  }
  const members = {
    ...(amount && { lowBalanceThreshold: amount }),
    ...(url && { alertUrl: url }),
    ...(email && { alertEmails: [...email] }),
  };
  return { members, paths };
}

interface AccountLimitOptions extends LimitOptions {
  /** `false`: the default. */
  readonly wait?: Duration | false;
}

async function limitAccount(
  transport: Transport,
  accountId: string,
  { wait, ...options }: AccountLimitOptions,
): Promise<Output> {
  const client = createClient(AccountService, transport);
  const readPresent = async () => (await client.getAccount({ accountId })).account?.rateLimits;
  const isOnly = wait !== undefined && Object.keys(options).length === 0;
  const { members, paths } = isOnly
    ? { members: {}, paths: [] }
    : await changedLimits(options, "account limit", readPresent);
  const limitWait = wait === false ? undefined : wait;
  return update(transport, { accountId, ...members, ...(limitWait && { limitWait }) }, [
    ...paths,
    ...(wait === undefined ? [] : ["limit_wait"]),
  ]);
}

/** Parses `5s`, `500ms` or `0s`. */
function waitArgument(text: string): Duration {
  const [, count, unit] = /^(\d{1,5})(ms|s)$/.exec(text) ?? [];
  if (count !== undefined) return durationFromMs(Number(count) * (unit === "s" ? 1_000 : 1));
  throw new InvalidArgumentError("Write a time such as 5s or 500ms, at most 30s, or none.");
}

async function suspend(transport: Transport, accountId: string, reason: string): Promise<Output> {
  const client = createClient(AccountService, transport);
  return shown((await client.suspendAccount({ accountId, reason })).account);
}

async function resume(transport: Transport, accountId: string): Promise<Output> {
  return shown(
    (await createClient(AccountService, transport).resumeAccount({ accountId })).account,
  );
}

async function erase(transport: Transport, accountId: string, yes: boolean): Promise<Output> {
  const client = createClient(AccountService, transport);
  if (yes) return shown((await client.eraseAccount({ accountId })).account);
  const name = (await client.getAccount({ accountId })).account?.name ?? "";
  throw new CliError(
    `this deletes the users, contents and names of "${name}" without return: repeat the command with --yes`,
  );
}

async function update(
  transport: Transport,
  account: MessageInitShape<typeof AccountSchema>,
  paths: readonly string[],
): Promise<Output> {
  const client = createClient(AccountService, transport);
  return shown(
    (await client.updateAccount({ account, updateMask: { paths: [...paths] } })).account,
  );
}

function shown(account: Account | undefined): Output {
  const json = { accountId: account?.accountId ?? "", ...accountTerms(account) };
  return { json, text: facts(json) };
}

/** Discount, alert and suspension of an account, in the words of the command line. */
function accountTerms(account: Account | undefined) {
  const threshold = account?.lowBalanceThreshold;
  return {
    state: account === undefined ? null : enumWord(AccountStateSchema, account.state),
    suspendReason: orNull(account?.suspendReason ?? ""),
    suspendedAt: timeText(account?.suspendTime),
    discountPercent: percentText(account?.discountBp ?? 0),
    priceList: orNull(account?.priceList ?? ""),
    lowBalanceThreshold: threshold === undefined ? null : usdText(threshold),
    alertUrl: orNull(account?.alertUrl ?? ""),
    alertEmails: account?.alertEmails ?? [],
    ...limitTerms(account),
    limitWaitMs: account?.limitWait === undefined ? null : durationMs(account.limitWait),
  };
}

// `uas topup`, `uas refund` and `uas account adjust`.

/** Maximum number of calls with the same request ID that are searched for the one to refund. */
const callsMax = 1_000;

interface MoneyOptions {
  readonly reference: string;
  readonly promo?: boolean;
  readonly reason?: string;
}

/** Adds the options of `uas topup`. */
export function addTopUp(topup: Command, { context, print }: CliTools): void {
  topup
    .argument("<account>", "account id")
    .argument("<amount>", "US dollars, such as 10.00", usdArgument)
    .requiredOption("--reference <text>", "your name for this payment, unique in the account")
    .option("--promo", "book it as a grant, not as a payment")
    .action(async (accountId: string, amount: Money, options: MoneyOptions) => {
      const wanted = { accountId, amount, ...options };
      print(await withBackend(context, ({ transport }) => topUp(transport, wanted)));
    });
}

/** Adds the options of `uas refund`. */
export function addRefund(refundCommand: Command, { context, print }: CliTools): void {
  refundCommand
    .argument("<call>", "request id of the call (x-request-id), or its call id")
    .argument("<amount>", "US dollars, such as 0.25", usdArgument)
    .requiredOption("--reference <text>", "your name for this refund, unique in the account")
    .action(async (call: string, amount: Money, { reference }: MoneyOptions) => {
      const wanted = { call, amount, reference };
      print(await withBackend(context, ({ transport }) => refund(transport, wanted)));
    });
}

function addAdjust(account: Command, { context, print }: CliTools): void {
  account
    .command("adjust")
    .description("correct a balance; repeating a reference changes nothing")
    .argument("<account>", "account id")
    .argument(
      "<amount>",
      "US dollars to add such as 5.00, or to take such as -5.00",
      signedUsdArgument,
    )
    .requiredOption("--reason <text>", "the reason; the customer sees it")
    .requiredOption("--reference <text>", "your name for this adjustment, unique in the account")
    .action(async (accountId: string, amount: Money, options: MoneyOptions) => {
      const { reason = "", reference } = options;
      const wanted = { accountId, amount, reason, reference };
      print(await withBackend(context, ({ transport }) => adjust(transport, wanted)));
    });
}

interface TopUp {
  readonly accountId: string;
  readonly amount: Money;
  readonly reference: string;
  readonly promo?: boolean;
}

async function topUp(transport: Transport, { promo = false, ...asked }: TopUp): Promise<Output> {
  const source = promo ? TopUpSource.PROMO : TopUpSource.PAYMENT;
  const booked = await createClient(BillingService, transport).topUp({ ...asked, source });
  return moved(asked, booked, `Added ${usdText(asked.amount)} USD.`);
}

interface Adjustment {
  readonly accountId: string;
  readonly amount: Money;
  readonly reason: string;
  readonly reference: string;
}

async function adjust(transport: Transport, asked: Adjustment): Promise<Output> {
  const booked = await createClient(BillingService, transport).adjustBalance(asked);
  return moved(asked, booked, `Adjusted by ${usdText(asked.amount)} USD.`);
}

interface Refund {
  readonly call: string;
  readonly amount: Money;
  readonly reference: string;
}

async function refund(transport: Transport, { call, amount, reference }: Refund): Promise<Output> {
  const client = createClient(BillingService, transport);
  const callId = await chargedCall(transport, call);
  const booked = await client.refund({ callId, amount, reference });
  const accountId = booked.balance?.accountId ?? "";
  return moved({ accountId, callId, reference }, booked, `Refunded ${usdText(amount)} USD.`);
}

/**
 * Finds the call to refund. Clients choose request ids and may repeat them, so an ambiguous one is
 * refused.
 */
async function chargedCall(transport: Transport, call: string): Promise<string> {
  const find = { filter: { requestId: call }, pageSize: callsMax };
  const { calls } = await createClient(CallService, transport).listCalls(find);
  const charged = calls.filter(({ cost }) => cost !== undefined && cost.amountNanos > 0n);
  const [first, ...others] = charged;
  if (first !== undefined && others.length === 0) return first.callId;
  if (first === undefined && calls.length === 0 && isUuid(call)) return call;
  throw new CliError(
    first === undefined
      ? `no charged call with request id "${call}": see uas calls list`
      : `${charged.length} charged calls have the request id "${call}": use the callId of one of them, from uas calls show ${call} --all`,
  );
}

interface Moved {
  readonly accountId: string;
  readonly callId?: string;
  readonly reference: string;
}

function moved(
  { accountId, callId, reference }: Moved,
  { balance, replayed }: { readonly balance?: Balance | undefined; readonly replayed: boolean },
  done: string,
): Output {
  const said = replayed ? `Reference "${reference}" was booked before: nothing changed.` : done;
  const known = callId === undefined ? { accountId } : { accountId, callId };
  const json = { ...known, ...balanceJson(balance), replayed };
  return { json, text: `${said}\n\n${facts(balanceJson(balance))}` };
}

/** A balance, as decimal USD strings. */
function balanceJson(balance: Balance | undefined): Record<string, string> {
  return {
    balance: usdText(balance?.balance),
    held: usdText(balance?.held),
    available: usdText(balance?.available),
  };
}
