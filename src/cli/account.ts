/** `uas account …`. */
import { createClient, type Transport } from "@connectrpc/connect";
import type { Command } from "commander";
import { AccountService } from "../../gen/uas/account/v1/account_service_pb.ts";
import { TopUpSource } from "../../gen/uas/billing/v1/billing_pb.ts";
import { BillingService } from "../../gen/uas/billing/v1/billing_service_pb.ts";
import type { Money } from "../../gen/uas/type/v1/money_pb.ts";
import { accountTerms, addAccountChanges } from "./account-change.ts";
import { withBackend } from "./backend.ts";
import type { CliTools, Output } from "./context.ts";
import { CliError, failureMessage } from "./failure.ts";
import { cell, facts, table } from "./output.ts";
import { addMoneyCommands, balanceJson } from "./money.ts";
import { everyPage } from "./pages.ts";
import { timeText, usdArgument, usdText } from "./values.ts";

/** Adds the commands. */
export function addAccountCommands(program: Command, { context, print }: CliTools): void {
  const account = program.command("account").description("manage accounts");
  account
    .command("create")
    .description("create an account, optionally with a balance")
    .requiredOption("--name <name>", "display name")
    .option("--balance <usd>", "what to grant at once, such as 10.00", usdArgument)
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
  addAccountChanges(account, { context, print });
  addMoneyCommands(program, account, { context, print });
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
      // Nobody has paid it: payments come by `uas topup`, with a reference of their own.
      const request = { accountId, amount: balance, reference, source: TopUpSource.PROMO };
      await createClient(BillingService, transport).topUp(request);
    } catch (error) {
      const retry = `npx uas topup ${accountId} ${usdText(balance)} --reference ${reference} --promo`;
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
