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
import { BillingService } from "../../gen/uas/billing/v1/billing_service_pb.ts";
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
export function addLedgerCommands(program: Command, { context, print }: CliTools): void {
  const ledger = program.command("ledger").description("look into the books");
  ledger
    .command("audit")
    .description("check the books; fails and names the broken rules where they are wrong")
    .action(async () => {
      print(await withBackend(context, ({ transport }) => audit(transport)));
    });
  ledger
    .command("list")
    .description("list the movements of an account, newest first")
    .requiredOption("--account <account>", "account id")
    .option("--kind <kinds>", "only these kinds, with commas between", kindsArgument)
    .option("--since <time>", "only from then on, such as 12h ago", (text) => pastArgument(text))
    .option("--until <time>", "only before then", (text) => pastArgument(text))
    .option("--limit <count>", "how many at most", countArgument, limitDefault)
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
    throw new InvalidArgumentError(`Write some of ${[...kinds.keys()].join(",")}.`);
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
function entryJson(entry: LedgerEntry) {
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

async function audit(transport: Transport): Promise<Output> {
  const response = await createClient(BillingService, transport).auditLedger({});
  const findings = response.findings.map(({ rule, detail }) => ({ rule, detail }));
  const isRight = findings.length === 0;
  const rows = findings.map(({ rule, detail }) => [rule, detail]);
  const text = isRight ? "ok: the books are right" : table(["RULE", "BROKEN BY"], rows);
  return { json: { ok: isRight, findings }, text, exitCode: isRight ? 0 : 1 };
}
