/** `uas calls …`. */
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { createClient, type Transport } from "@connectrpc/connect";
import type { Command } from "commander";
import { AccountService } from "../../gen/uas/account/v1/account_service_pb.ts";
import { LedgerKindSchema } from "../../gen/uas/billing/v1/billing_pb.ts";
import {
  CallEndingSchema,
  type CallRecord,
  CallOutcome,
  CallRecordSchema,
} from "../../gen/uas/billing/v1/call_pb.ts";
import { CallService } from "../../gen/uas/billing/v1/call_service_pb.ts";
import {
  HoldEventKindSchema,
  PriceUnitSchema,
  type Receipt,
} from "../../gen/uas/billing/v1/receipt_pb.ts";
import type { Money } from "../../gen/uas/type/v1/money_pb.ts";
import { type Usage, UsageSourceSchema } from "../../gen/uas/type/v1/usage_pb.ts";
import { rareUnits } from "../config/price-units.ts";
import type { ErrorCode } from "../core/errors.ts";
import { errorWord } from "../core/error-words.ts";
import { withBackend } from "./backend.ts";
import type { CliTools, Output } from "./context.ts";
import { CliError } from "./failure.ts";
import { cell, facts, table, everyPage } from "./output.ts";
import { perText, priceJson } from "./price-json.ts";
import {
  countArgument,
  enumWord,
  orNull,
  timeText,
  usdText,
  pastArgument,
  errorArgument,
  millis,
} from "./values.ts";

/** Default number of listed calls. */
const limitDefault = 100;

/** Adds the commands. */
export function addCallsCommands(calls: Command, { context, print }: CliTools): void {
  calls
    .command("list")
    .description("list the calls of an account, newest first")
    .requiredOption("--account <account>", "account id")
    .option("--model <model>", "only calls of this model")
    .option("--key <key>", "only calls with this key, by its id")
    .option("--error <code>", "only calls with this error code", errorArgument)
    .option("--failed", "only calls that failed")
    .option("--since <time>", "only calls from this time on, such as 12h (ago)", (text) =>
      pastArgument(text),
    )
    .option("--until <time>", "only calls before this time", (text) => pastArgument(text))
    .option("--limit <count>", "maximum number", countArgument, limitDefault)
    .action(async (options: ListOptions) => {
      print(await withBackend(context, ({ transport }) => listCalls(transport, options)));
    });
  calls
    .command("show")
    .description("show the newest call with a request id (x-request-id), and its receipt")
    .argument("<request>", "request id")
    .option("--all", "list all calls with this id: clients choose request ids, so they can repeat")
    .action(async (requestId: string, { all = false }: { all?: boolean }) => {
      const show = all ? showAll : showNewest;
      print(await withBackend(context, ({ transport }) => show(transport, requestId)));
    });
}

interface ListOptions {
  readonly account: string;
  readonly model?: string;
  readonly key?: string;
  readonly error?: ErrorCode;
  readonly failed?: boolean;
  readonly since?: Timestamp;
  readonly until?: Timestamp;
  readonly limit: number;
}

async function listCalls(transport: Transport, options: ListOptions): Promise<Output> {
  const { account, limit, model = "", key = "", error, failed, since, until } = options;
  // An unknown account has an empty call log; a mistyped id should not look like that.
  await createClient(AccountService, transport).getAccount({ accountId: account });
  const client = createClient(CallService, transport);
  const filter = {
    model,
    keyId: key,
    ...(error && { errorCode: error }),
    outcome: failed ? CallOutcome.FAILED : CallOutcome.UNSPECIFIED,
    ...(since && { fromTime: since }),
    ...(until && { toTime: until }),
  };
  const calls = await everyPage(limit, async (page) => {
    const response = await client.listCalls({ accountId: account, filter, ...page });
    return { items: response.calls, nextPageToken: response.nextPageToken };
  });
  return callList(calls);
}

async function showAll(transport: Transport, requestId: string): Promise<Output> {
  return callList(await findCalls(transport, { requestId, limit: Infinity }));
}

async function showNewest(transport: Transport, requestId: string): Promise<Output> {
  const [call] = await findCalls(transport, { requestId, limit: 1 });
  if (call === undefined) throw new Error("no call was found");
  const { callId } = call;
  const { receipt } = await createClient(CallService, transport).getCall({
    call: { case: "callId", value: callId },
  });
  if (receipt === undefined) throw new Error("the answer has no receipt");
  // The receipt has what the list leaves out.
  const record = callJson(receipt.call ?? call);
  const json = { ...record, receipt: receiptJson(receipt) };
  return { json, text: `${facts(record)}\n\n${receiptText(json.receipt)}` };
}

async function findCalls(
  transport: Transport,
  { requestId, limit }: { readonly requestId: string; readonly limit: number },
): Promise<readonly CallRecord[]> {
  const client = createClient(CallService, transport);
  const calls = await everyPage(limit, async (page) => {
    const response = await client.listCalls({ filter: { requestId }, ...page });
    return { items: response.calls, nextPageToken: response.nextPageToken };
  });
  if (calls.length > 0) return calls;
  throw new CliError(
    `no call with request id "${requestId}": take it from the x-request-id header of the reply, or see uas calls list; requests with an unknown key are not recorded`,
  );
}

function callList(calls: readonly CallRecord[]): Output {
  const json = calls.map(callJson);
  const head = ["STARTED", "REQUEST ID", "MODEL", "STATUS", "ENDING", "IN", "OUT", "COST", "CALLS"];
  const rows = json.map((call, index) =>
    [
      call.startedAt,
      call.requestId,
      call.model,
      call.status,
      call.ending,
      call.inputTokens,
      call.outputTokens,
      call.cost,
      calls[index]?.refusedCount || 1,
    ].map(cell),
  );
  return { json, text: table(head, rows) };
}

/** A call record in the words of the command line. The first members are fixed; more may follow. */
function callJson(call: CallRecord) {
  const { usage } = call;
  return {
    requestId: call.requestId,
    accountId: call.accountId,
    keyId: call.keyId,
    model: call.model,
    vendor: orNull(call.vendor),
    status: call.status,
    errorCode: orNull(errorWord(call.errorCode)),
    ending: enumWord(CallEndingSchema, call.ending),
    usageSource: enumWord(UsageSourceSchema, call.usageSource),
    inputTokens: usage?.inputTokens ?? 0,
    cachedInputTokens: usage?.cachedInputTokens ?? 0,
    outputTokens: usage?.outputTokens ?? 0,
    cost: usdText(call.cost),
    priceVersion: orNull(call.priceVersion),
    startedAt: timeText(call.startTime),
    durationMs: millis(call.duration),
    firstByteMs: millis(call.firstContentDuration),
    cacheWriteTokens: usage?.cacheWriteTokens ?? 0,
    cacheWrite1hTokens: usage?.cacheWrite1hTokens ?? 0,
    cacheWrite12hTokens: usage?.cacheWrite12hTokens ?? 0,
    reasoningTokens: usage?.reasoningTokens ?? 0,
    units: unitsJson(usage),
    held: usdText(call.held),
    callId: call.callId,
    upstreamRequestId: orNull(call.upstreamRequestId),
    stream: call.stream,
    path: call.path,
    dropped: call.dropped,
    attempts: call.attempts.map((attempt) => ({
      vendor: attempt.vendor,
      model: orNull(attempt.vendorModel),
      credential: orNull(attempt.credential),
      errorCode: errorWord(attempt.errorCode),
      durationMs: millis(attempt.duration),
      vendorCost: attempt.vendorCost ? usdText(attempt.vendorCost) : null,
    })),
    ...laterFields(call),
  };
}

/** Plain fields that were added to the record after `attempts`. An empty text is null. */
function laterFields(call: CallRecord): Readonly<Record<string, unknown>> {
  const { number: last } = CallRecordSchema.field.attempts;
  const later = CallRecordSchema.fields.filter(
    ({ fieldKind, number }) => fieldKind === "scalar" && number > last,
  );
  const values = new Map<string, unknown>(Object.entries(call));
  return Object.fromEntries(
    later.map(({ localName }) => {
      const value = values.get(localName);
      return [localName, value === "" ? null : value];
    }),
  );
}

/** Quantities of rare units, by their names in `uas.yaml`. */
function unitsJson(usage: Usage | undefined): Readonly<Record<string, number>> {
  const used = rareUnits.flatMap(({ name, usage: member }) => {
    const quantity = usage?.[member] ?? 0;
    return quantity === 0 ? [] : [[name, quantity] as const];
  });
  return Object.fromEntries(used);
}

/** The receipt as JSON: all amounts in USD, line amounts exact. */
type ReceiptJson = ReturnType<typeof receiptJson>;

/** Writes a receipt as JSON. */
function receiptJson(receipt: Receipt) {
  return {
    charged: receipt.charged,
    lines: receipt.lines.map(({ unit, quantity, price, per, amount }) => ({
      unit: enumWord(PriceUnitSchema, unit),
      quantity,
      price,
      per,
      amount,
    })),
    subtotal: receipt.subtotal,
    discountBp: receipt.call?.discountBp ?? 0,
    discount: receipt.discount,
    amount: usdText(receipt.amount),
    recomputed: moneyText(receipt.recomputed),
    shortfall: usdText(receipt.shortfall),
    priceVersion: orNull(receipt.call?.priceVersion ?? ""),
    price: receipt.price === undefined ? null : priceJson(receipt.price),
    tierAbove: receipt.tierAbove ?? null,
    serviceTier: orNull(receipt.price?.serviceTier ?? ""),
    holds: receipt.holds.map(({ kind, held, time }) => ({
      event: enumWord(HoldEventKindSchema, kind),
      held: usdText(held),
      time: timeText(time),
    })),
    entries: receipt.entries.map((entry) => ({
      transactionId: entry.transactionId,
      kind: enumWord(LedgerKindSchema, entry.kind),
      amount: usdText(entry.amount),
      balanceBefore: moneyText(entry.balanceBefore),
      balanceAfter: moneyText(entry.balanceAfter),
      time: timeText(entry.createTime),
      reference: orNull(entry.reference),
    })),
    vendorCost: moneyText(receipt.vendorCost),
  };
}

function moneyText(money: Money | undefined): string | null {
  return money === undefined ? null : usdText(money);
}

/** Writes a receipt for people: charge, hold and ledger entries. */
function receiptText(json: ReceiptJson): string {
  const { amount, recomputed, shortfall, priceVersion, tierAbove, serviceTier, vendorCost } = json;
  const sums = facts({
    amount,
    recomputed,
    priceVersion,
    ...(tierAbove !== null && { tierAbove }),
    ...(serviceTier !== null && { serviceTier }),
    ...(shortfall !== "0" && { shortfall }),
    ...(vendorCost !== null && { vendorCost }),
  });
  return [sums, ...linesText(json), ...holdsText(json), ...entriesText(json)].join("\n\n");
}

function linesText({ lines, subtotal, discountBp, discount, amount }: ReceiptJson): string[] {
  if (lines.length === 0) return [];
  const rows = lines.map((line) => [
    line.unit ?? "",
    line.quantity,
    `${line.price} per ${perText(line.unit ?? "")}`,
    line.amount,
  ]);
  const percent = `discount ${discountBp / 100} %`;
  const sums = [
    ["subtotal", "", "", subtotal],
    ...(discountBp === 0 ? [] : [[percent, "", "", `-${discount}`]]),
    ["amount", "", "", amount],
  ];
  return [table(["LINE", "QUANTITY", "PRICE", "USD"], [...rows, ...sums])];
}

function holdsText({ holds }: ReceiptJson): string[] {
  if (holds.length === 0) return [];
  const rows = holds.map(({ time, event, held }) => [time, event, held].map(cell));
  return [table(["TIME", "HOLD", "HELD"], rows)];
}

function entriesText({ entries }: ReceiptJson): string[] {
  if (entries.length === 0) return [];
  const rows = entries.map((entry) =>
    [
      entry.time,
      entry.kind,
      entry.amount,
      entry.balanceBefore,
      entry.balanceAfter,
      entry.reference,
    ].map(cell),
  );
  return [table(["TIME", "MOVED", "USD", "BEFORE", "AFTER", "REFERENCE"], rows)];
}
