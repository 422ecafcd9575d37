/** `uas ledger …`. */
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { createClient, type Transport } from "@connectrpc/connect";
import { type Command, InvalidArgumentError } from "commander";
import { AccountService } from "../../gen/uas/account/v1/account_service_pb.ts";
import {
  type LedgerEntry,
  LedgerKind,
  LedgerKindSchema,
} from "../../gen/uas/billing/v1/billing_pb.ts";
import {
  BillingService,
  type LedgerCheckpoint,
} from "../../gen/uas/billing/v1/billing_service_pb.ts";
import { withBackend } from "./backend.ts";
import type { CliTools, Output } from "./context.ts";
import { cell, table, everyPage } from "./output.ts";
import {
  countArgument,
  enumWord,
  listArgument,
  orNull,
  timeText,
  usdText,
  pastArgument,
} from "./values.ts";

/** Default number of listed entries. */
const limitDefault = 100;

/** Adds the commands. */
export function addLedgerCommands(ledger: Command, { context, print }: CliTools): void {
  ledger
    .command("audit")
    .description(
      "audit the new entries of the ledger; exits with 1 and names the broken rules, if any",
    )
    .option("--full", "audit the whole ledger and all its checkpoints again", false)
    .option(
      "--expect <number:hash>",
      "a checkpoint that was noted earlier; fail if the ledger does not contain it",
      notedArgument,
    )
    .action(async (options: AuditOptions) => {
      print(await withBackend(context, ({ transport }) => audit(transport, options)));
    });
  ledger
    .command("accept")
    .description("accept new entries that break a rule, so that audits continue after them")
    .requiredOption("--reason <reason>", "why they are accepted; stored in the audit log")
    .action(async ({ reason }: { reason: string }) => {
      print(await withBackend(context, ({ transport }) => accept(transport, reason)));
    });
  ledger
    .command("list")
    .description("list the ledger entries of an account, newest first")
    .requiredOption("--account <account>", "account id")
    .option("--kind <kinds>", "only these kinds, separated by commas", kindsArgument)
    .option("--since <time>", "only entries from this time on, such as 12h (ago)", (text) =>
      pastArgument(text),
    )
    .option("--until <time>", "only entries before this time", (text) => pastArgument(text))
    .option("--limit <count>", "maximum number", countArgument, limitDefault)
    .action(async (options: ListOptions) => {
      print(await withBackend(context, ({ transport }) => listEntries(transport, options)));
    });
}

interface ListOptions {
  readonly account: string;
  readonly kind?: LedgerKind[];
  readonly since?: Timestamp;
  readonly until?: Timestamp;
  readonly limit: number;
}

/** Kinds of ledger entries by name, such as `top_up`. */
const kinds = new Map(
  LedgerKindSchema.values
    .filter(({ number }) => number !== LedgerKind.UNSPECIFIED)
    .map(({ number }) => [enumWord(LedgerKindSchema, number), number as LedgerKind]),
);

function kindsArgument(text: string): LedgerKind[] {
  return listArgument(text).map((word) => {
    const kind = kinds.get(word);
    if (kind !== undefined) return kind;
    throw new InvalidArgumentError(`Write one or more of ${[...kinds.keys()].join(",")}.`);
  });
}

async function listEntries(transport: Transport, options: ListOptions): Promise<Output> {
  const { account: accountId, kind = [], since, until, limit } = options;
  // An unknown account has an empty ledger; a mistyped id should not look like that.
  await createClient(AccountService, transport).getAccount({ accountId });
  const client = createClient(BillingService, transport);
  const filter = {
    kinds: kind,
    ...(since && { fromTime: since }),
    ...(until && { toTime: until }),
  };
  const entries = await everyPage(limit, async (page) => {
    const response = await client.listLedgerEntries({ accountId, ...filter, ...page });
    return { items: response.entries, nextPageToken: response.nextPageToken };
  });
  const json = entries.map(entryJson);
  const rows = json.map((entry) => [
    cell(entry.createdAt),
    cell(entry.kind),
    entry.amount,
    cell(entry.balanceAfter),
    entry.transactionId,
    cell(entry.reference),
    cell(entry.reason),
  ]);
  const head = ["BOOKED", "KIND", "AMOUNT", "BALANCE", "TRANSACTION", "REFERENCE", "REASON"];
  return { json, text: table(head, rows) };
}

/** A ledger entry in the words of the command line. */
export function entryJson(entry: LedgerEntry) {
  const { balanceAfter } = entry;
  return {
    transactionId: entry.transactionId,
    kind: enumWord(LedgerKindSchema, entry.kind),
    amount: usdText(entry.amount),
    balanceAfter: balanceAfter === undefined ? null : usdText(balanceAfter),
    reference: orNull(entry.reference),
    reason: orNull(entry.reason),
    createdAt: timeText(entry.createTime),
  };
}

interface AuditOptions {
  readonly full: boolean;
  readonly expect?: { readonly number: bigint; readonly hash: string };
}

function notedArgument(text: string): AuditOptions["expect"] {
  const [, number, hash] = /^([1-9]\d{0,17}):([0-9a-f]{64})$/.exec(text) ?? [];
  if (number === undefined || hash === undefined) {
    throw new InvalidArgumentError("Write NUMBER:HASH, as `uas ledger audit` prints it.");
  }
  return { number: BigInt(number), hash };
}

async function audit(transport: Transport, options: AuditOptions): Promise<Output> {
  const response = await createClient(BillingService, transport).auditLedger(options);
  const findings = response.findings.map(({ rule, detail }) => ({ rule, detail }));
  const { complete } = response;
  const checkpoint = response.checkpoint ? checkpointJson(response.checkpoint) : null;
  const isRight = findings.length === 0;
  const rows = findings.map(({ rule, detail }) => [rule, detail]);
  const rest = complete ? "" : "; the audit is not finished, run it again";
  const right = `ok: the ledger is consistent${checkpointText(checkpoint)}${rest}`;
  return {
    json: { ok: isRight, findings, checkpoint, complete },
    text: isRight ? right : table(["RULE", "BROKEN BY"], rows),
    exitCode: isRight ? 0 : 1,
  };
}

async function accept(transport: Transport, reason: string): Promise<Output> {
  const response = await createClient(BillingService, transport).acceptLedger({ reason });
  const checkpoint = response.checkpoint ? checkpointJson(response.checkpoint) : null;
  return { json: { checkpoint }, text: `accepted${checkpointText(checkpoint)}` };
}

type CheckpointJson = ReturnType<typeof checkpointJson>;

/** A checkpoint in the words of the command line. */
function checkpointJson({ number, createTime, entries, balances, hash }: LedgerCheckpoint) {
  return {
    number: Number(number),
    createdAt: timeText(createTime),
    entries: Number(entries),
    balances: usdText(balances),
    hash,
  };
}

function checkpointText(checkpoint: CheckpointJson | null): string {
  if (checkpoint === null) return "";
  const { number, hash, createdAt, entries, balances } = checkpoint;
  return `; checkpoint ${number}:${hash} of ${createdAt}: ${entries} entries, balances of ${balances} USD`;
}
