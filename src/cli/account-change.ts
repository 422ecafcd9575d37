/** `uas account suspend|resume|discount|alert`. */
import { createClient, type Transport } from "@connectrpc/connect";
import type { Command } from "commander";
import { type Account, AccountStateSchema } from "../../gen/uas/account/v1/account_pb.ts";
import { AccountService } from "../../gen/uas/account/v1/account_service_pb.ts";
import type { Money } from "../../gen/uas/type/v1/money_pb.ts";
import { withBackend } from "./backend.ts";
import type { CliTools, Output } from "./context.ts";
import { facts } from "./output.ts";
import {
  enumWord,
  orNull,
  orWord,
  percentArgument,
  percentText,
  timeText,
  usdArgument,
  usdText,
} from "./values.ts";

/** Adds the commands to `account`. */
export function addAccountChanges(account: Command, { context, print }: CliTools): void {
  const run = async (change: (transport: Transport) => Promise<Output>): Promise<void> =>
    print(await withBackend(context, ({ transport }) => change(transport)));
  account
    .command("suspend")
    .description("refuse new calls with all keys of an account, on every node within a second")
    .argument("<account>", "account id")
    .requiredOption("--reason <text>", "why; only operators see it")
    .action((accountId: string, { reason }: { reason: string }) =>
      run((transport) => suspend(transport, accountId, reason)),
    );
  account
    .command("resume")
    .description("let the keys of a suspended account make calls again")
    .argument("<account>", "account id")
    .action((accountId: string) => run((transport) => resume(transport, accountId)));
  account
    .command("discount")
    .description("take a part off every price that an account pays, from its next call on")
    .argument("<account>", "account id")
    .argument("<percent>", "0 to 100, such as 12.5", percentArgument)
    .action((accountId: string, discountBp: number) =>
      run((transport) => update(transport, { accountId, discountBp }, "discount_bp")),
    );
  account
    .command("alert")
    .description("be told, in the log and by a metric, when a balance falls below an amount")
    .argument("<account>", "account id")
    .argument("<amount>", "US dollars such as 5.00, or off", orWord("off", usdArgument))
    .action((accountId: string, lowBalanceThreshold: Money | false) => {
      const wanted = { accountId, ...(lowBalanceThreshold && { lowBalanceThreshold }) };
      return run((transport) => update(transport, wanted, "low_balance_threshold"));
    });
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

async function update(
  transport: Transport,
  account: { accountId: string; discountBp?: number; lowBalanceThreshold?: Money },
  path: "discount_bp" | "low_balance_threshold",
): Promise<Output> {
  const client = createClient(AccountService, transport);
  return shown((await client.updateAccount({ account, updateMask: { paths: [path] } })).account);
}

function shown(account: Account | undefined): Output {
  const json = { accountId: account?.accountId ?? "", ...accountTerms(account) };
  return { json, text: facts(json) };
}

/** What an account is held to, in the words of the command line. */
export function accountTerms(account: Account | undefined) {
  const threshold = account?.lowBalanceThreshold;
  return {
    state: account === undefined ? null : enumWord(AccountStateSchema, account.state),
    suspendReason: orNull(account?.suspendReason ?? ""),
    suspendedAt: timeText(account?.suspendTime),
    discountPercent: percentText(account?.discountBp ?? 0),
    lowBalanceThreshold: threshold === undefined ? null : usdText(threshold),
  };
}
