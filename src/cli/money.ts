/** `uas topup`, `uas refund` and `uas account adjust`. */
import { createClient, type Transport } from "@connectrpc/connect";
import type { Command } from "commander";
import { type Balance, TopUpSource } from "../../gen/uas/billing/v1/billing_pb.ts";
import { BillingService } from "../../gen/uas/billing/v1/billing_service_pb.ts";
import { CallService } from "../../gen/uas/billing/v1/call_service_pb.ts";
import type { Money } from "../../gen/uas/type/v1/money_pb.ts";
import { isUuid } from "../core/uuid.ts";
import { withBackend } from "./backend.ts";
import type { CliTools, Output } from "./context.ts";
import { CliError } from "./failure.ts";
import { facts } from "./output.ts";
import { signedUsdArgument, usdArgument, usdText } from "./values.ts";

/** How many calls with the same request id are searched for the one to refund. */
const callsMax = 1_000;

interface MoneyOptions {
  readonly reference: string;
  readonly promo?: boolean;
  readonly reason?: string;
}

/** Adds the commands: `adjust` to `account`, the others to the program. */
export function addMoneyCommands(
  program: Command,
  account: Command,
  { context, print }: CliTools,
): void {
  const run = async (move: (transport: Transport) => Promise<Output>): Promise<void> =>
    print(await withBackend(context, ({ transport }) => move(transport)));
  program
    .command("topup")
    .description("add money to an account; repeating a reference changes nothing")
    .argument("<account>", "account id")
    .argument("<amount>", "US dollars, such as 10.00", usdArgument)
    .requiredOption("--reference <text>", "what this payment is known by, unique in the account")
    .option("--promo", "a grant, which nobody paid for")
    .action((accountId: string, amount: Money, options: MoneyOptions) =>
      run((transport) => topUp(transport, { accountId, amount, ...options })),
    );
  program
    .command("refund")
    .description("give a charge back, wholly or in part; repeating a reference changes nothing")
    .argument("<call>", "request id of the call (x-request-id), or its call id")
    .argument("<amount>", "US dollars, such as 0.25", usdArgument)
    .requiredOption("--reference <text>", "what this refund is known by, unique in the account")
    .action((call: string, amount: Money, { reference }: MoneyOptions) =>
      run((transport) => refund(transport, { call, amount, reference })),
    );
  account
    .command("adjust")
    .description("correct a balance; repeating a reference changes nothing")
    .argument("<account>", "account id")
    .argument(
      "<amount>",
      "US dollars to add such as 5.00, or to take such as -5.00",
      signedUsdArgument,
    )
    .requiredOption("--reason <text>", "why; the customer sees it")
    .requiredOption("--reference <text>", "what this is known by, unique in the account")
    .action((accountId: string, amount: Money, { reason = "", reference }: MoneyOptions) =>
      run((transport) => adjust(transport, { accountId, amount, reason, reference })),
    );
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

/** Finds the call to refund. Clients choose request ids and may repeat them, so an ambiguous one is refused. */
async function chargedCall(transport: Transport, call: string): Promise<string> {
  const find = { filter: { requestId: call }, pageSize: callsMax };
  const { calls } = await createClient(CallService, transport).listCalls(find);
  const charged = calls.filter(({ cost }) => cost !== undefined && cost.amountNanos > 0n);
  const [first, ...others] = charged;
  if (first !== undefined && others.length === 0) return first.callId;
  if (first === undefined && calls.length === 0 && isUuid(call)) return call;
  throw new CliError(
    first === undefined
      ? `no charged call with request id "${call}": see npx uas calls list`
      : `${charged.length} charged calls have the request id "${call}": name one by its callId, see npx uas calls show ${call} --all`,
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
export function balanceJson(balance: Balance | undefined): Record<string, string> {
  return {
    balance: usdText(balance?.balance),
    held: usdText(balance?.held),
    available: usdText(balance?.available),
  };
}
