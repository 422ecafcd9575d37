/** `uas export …`: writes calls or ledger entries as a file, while they are read. */
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { createClient, type Transport } from "@connectrpc/connect";
import { type Command, Option } from "commander";
import { stringify } from "csv-stringify/sync";
import { AccountService } from "../../gen/uas/account/v1/account_service_pb.ts";
import { BillingService } from "../../gen/uas/billing/v1/billing_service_pb.ts";
import { ExportFormat } from "../../gen/uas/billing/v1/call_pb.ts";
import { readCallFile } from "../core/call-file.ts";
import { pageSizeMax } from "../core/limits.ts";
import { withBackend } from "./backend.ts";
import type { CliTools } from "./context.ts";
import { entryJson } from "./ledger.ts";
import { pastArgument } from "./values.ts";

interface ExportOptions {
  readonly account?: string;
  readonly from?: Timestamp;
  readonly to?: Timestamp;
  readonly format: "csv" | "jsonl";
}

/** Writes a piece of the file. */
type Write = (text: string) => void;

/** Adds the commands. */
export function addExportCommands(group: Command, { context }: CliTools): void {
  const add = (
    name: string,
    description: string,
    write: (transport: Transport, options: ExportOptions, out: Write) => Promise<void>,
  ): void => {
    group
      .command(name)
      .description(description)
      .option("--account <account>", "account id (default: all accounts)")
      .option("--from <time>", "from this time on, such as 30d (ago)", (text) => pastArgument(text))
      .option("--to <time>", "before this time (default: now)", (text) => pastArgument(text))
      .addOption(
        new Option("--format <format>", "csv or jsonl").choices(["csv", "jsonl"]).default("csv"),
      )
      .action(async (options: ExportOptions) => {
        const out = (text: string): void => context.out(text);
        await withBackend(context, ({ transport }) => write(transport, options, out));
      });
  };
  add(
    "calls",
    "write calls to the standard output, newest first; of all accounts: with vendor cost",
    writeCalls,
  );
  add(
    "ledger",
    "write the ledger entries of accounts to the standard output, newest first",
    writeEntries,
  );
}

async function writeCalls(transport: Transport, options: ExportOptions, out: Write): Promise<void> {
  const { account: accountId = "" } = options;
  const format = options.format === "csv" ? ExportFormat.CSV : ExportFormat.JSON;
  if (accountId !== "") await createClient(AccountService, transport).getAccount({ accountId });
  const pieces = readCallFile(transport, { accountId, format, filter: rangeOf(options) });
  for await (const text of pieces) out(text);
}

function rangeOf({ from, to }: ExportOptions) {
  return { ...(from && { fromTime: from }), ...(to && { toTime: to }) };
}

async function writeEntries(
  transport: Transport,
  options: ExportOptions,
  out: Write,
): Promise<void> {
  if (options.format === "csv") out(csv([entryColumns]));
  for await (const accountId of accountsOf(transport, options.account)) {
    await writeAccount(transport, accountId, { options, out });
  }
}

async function* accountsOf(
  transport: Transport,
  account: string | undefined,
): AsyncGenerator<string> {
  const client = createClient(AccountService, transport);
  if (account !== undefined) {
    await client.getAccount({ accountId: account });
    yield account;
    return;
  }
  for (let pageToken = "", isFirst = true; isFirst || pageToken !== ""; isFirst = false) {
    const page = await client.listAccounts({ pageSize: pageSizeMax, pageToken });
    for (const { accountId } of page.accounts) yield accountId;
    pageToken = page.nextPageToken;
  }
}

async function writeAccount(
  transport: Transport,
  accountId: string,
  { options, out }: { readonly options: ExportOptions; readonly out: Write },
): Promise<void> {
  const client = createClient(BillingService, transport);
  for (let pageToken = "", isFirst = true; isFirst || pageToken !== ""; isFirst = false) {
    const request = { accountId, pageSize: pageSizeMax, pageToken, ...rangeOf(options) };
    const page = await client.listLedgerEntries(request);
    const lines = page.entries.map((entry) => ({
      accountId,
      ...entryJson(entry),
      currency: "USD",
    }));
    out(options.format === "csv" ? csv(lines.map(cellsOf)) : lines.map(jsonLine).join(""));
    pageToken = page.nextPageToken;
  }
}

type EntryLine = ReturnType<typeof entryJson> & {
  readonly accountId: string;
  readonly currency: string;
};

const entryColumns: readonly (keyof EntryLine)[] = [
  "createdAt",
  "accountId",
  "transactionId",
  "kind",
  "amount",
  "currency",
  "balanceAfter",
  "reference",
  "reason",
];

function cellsOf(line: EntryLine): readonly unknown[] {
  return entryColumns.map((name) => line[name]);
}

function jsonLine(line: EntryLine): string {
  return `${JSON.stringify(line)}\n`;
}

/** Rows as in the export of calls. */
function csv(rows: readonly (readonly unknown[])[]): string {
  const options = { escape_formulas: true, record_delimiter: "windows" } as const;
  return stringify(
    rows.map((cells) => [...cells]),
    options,
  );
}
