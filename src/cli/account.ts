/** `uas account …` and `uas topup`. */
import { createClient, type Transport } from "@connectrpc/connect";
import type { Command } from "commander";
import { AccountService } from "../../gen/uas/account/v1/account_service_pb.ts";
import type { Balance } from "../../gen/uas/billing/v1/billing_pb.ts";
import { BillingService } from "../../gen/uas/billing/v1/billing_service_pb.ts";
import type { Money } from "../../gen/uas/type/v1/money_pb.ts";
import { withBackend } from "./backend.ts";
import type { CliTools, Output } from "./context.ts";
import { CliError, failureMessage } from "./failure.ts";
import { facts, table } from "./output.ts";
import { everyPage } from "./pages.ts";
import { timeText, usdArgument, usdText } from "./values.ts";

/** Adds the commands. */
export function addAccountCommands(program: Command, { context, print }: CliTools): void {
  const account = program.command("account").description("manage accounts");
  account
    .command("create")
    .description("create an account, optionally with a balance")
    .requiredOption("--name <name>", "display name")
    .option("--balance <usd>", "what to credit at once, such as 10.00", usdArgument)
    .action(async (options: { name: string; balance?: Money }) => {
      print(await withBackend(context, ({ transport }) => createAccount(transport, options)));
    });
  account
    .command("show")
    .description("show an account and what it has")
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
  program
    .command("topup")
    .description("add money to an account; repeating a reference changes nothing")
    .argument("<account>", "account id")
    .argument("<amount>", "US dollars, such as 10.00", usdArgument)
    .requiredOption("--reference <text>", "what this payment is known by, unique in the account")
    .action(async (accountId: string, amount: Money, { reference }: { reference: string }) => {
      const request = { accountId, amount, reference };
      print(await withBackend(context, ({ transport }) => topUp(transport, request)));
    });
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
      const request = { accountId, amount: balance, reference };
      await createClient(BillingService, transport).topUp(request);
    } catch (error) {
      const retry = `npx uas topup ${accountId} ${usdText(balance)} --reference ${reference}`;
      const message = `account ${accountId} was created, but not credited: ${failureMessage(error)}; retry with: ${retry}`;
      throw new CliError(message, { cause: error });
    }
  }
  const hint = `Next, make a key: npx uas key create --account ${accountId}`;
  return { json: { accountId }, text: `${facts({ accountId })}\n\n${hint}` };
}

async function showAccount(transport: Transport, accountId: string): Promise<Output> {
  const [{ account }, { balance }] = await Promise.all([
    // Only this one fails where there is no such account: without movements, a balance is zero.
    createClient(AccountService, transport).getAccount({ accountId }),
    createClient(BillingService, transport).getBalance({ accountId }),
  ]);
  const createdAt = timeText(account?.createTime);
  const json = { accountId, name: account?.name ?? "", createdAt, ...balanceJson(balance) };
  return { json, text: facts(json) };
}

async function listAccounts(transport: Transport): Promise<Output> {
  const client = createClient(AccountService, transport);
  const accounts = await everyPage(Infinity, async (page) => {
    const response = await client.listAccounts(page);
    return { items: response.accounts, nextPageToken: response.nextPageToken };
  });
  const json = accounts.map(({ accountId, name, createTime }) => ({
    accountId,
    name,
    createdAt: timeText(createTime),
  }));
  const rows = json.map(({ accountId, name, createdAt }) => [accountId, name, createdAt ?? ""]);
  return { json, text: table(["ACCOUNT", "NAME", "CREATED"], rows) };
}

async function topUp(
  transport: Transport,
  request: { readonly accountId: string; readonly amount: Money; readonly reference: string },
): Promise<Output> {
  const response = await createClient(BillingService, transport).topUp(request);
  const { accountId, amount, reference } = request;
  const said = response.replayed
    ? `Reference "${reference}" was booked before: nothing changed.`
    : `Added ${usdText(amount)} USD.`;
  const json = { accountId, ...balanceJson(response.balance), replayed: response.replayed };
  return { json, text: `${said}\n\n${facts(balanceJson(response.balance))}` };
}

/** What an account has, as decimal USD strings. */
function balanceJson(balance: Balance | undefined): Record<string, string> {
  return {
    balance: usdText(balance?.balance),
    held: usdText(balance?.held),
    available: usdText(balance?.available),
  };
}
