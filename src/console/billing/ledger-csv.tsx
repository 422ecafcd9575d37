/** The ledger as a file: the movements that fit the filters. */
import { createClient } from "@connectrpc/connect";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { useState } from "react";
import { type LedgerEntry, LedgerKindSchema } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { csvOf } from "../csv.ts";
import { useText } from "../language.tsx";
import { exactUsd, nanosOf } from "../money.ts";
import { shownError, transport } from "../rpc.ts";
import type { LedgerSearch } from "../search.ts";
import { dayText } from "../time.ts";
import { Button } from "../ui/button.tsx";
import { saveFile } from "../ui/save-file.ts";
import { useToast } from "../ui/toast.tsx";
import { ledgerFilterOf } from "./filter.ts";

const client = createClient(BillingService, transport);

/** How many movements are asked for at once, and how many one file has at most. */
const pageSize = 1_000;
const entriesMax = 100_000;

/** The button that saves it. */
export function LedgerCsv({ accountId, search }: { accountId: string; search: LedgerSearch }) {
  const { billing: text } = useText();
  const toast = useToast();
  const [isBusy, setBusy] = useState(false);
  const save = async (): Promise<void> => {
    setBusy(true);
    try {
      const csv = csvOf(head, (await allEntries(accountId, search)).map(cellsOf));
      saveFile(`ledger-${dayText(Date.now())}.csv`, new Blob([csv], { type: "text/csv" }));
    } catch (error) {
      toast({ title: shownError(error).text });
    } finally {
      setBusy(false);
    }
  };
  return (
    <Button isBusy={isBusy} onClick={() => void save()}>
      {text.download}
    </Button>
  );
}

async function allEntries(accountId: string, search: LedgerSearch): Promise<LedgerEntry[]> {
  const filter = ledgerFilterOf(search);
  const all: LedgerEntry[] = [];
  let pageToken = "";
  do {
    const page = await client.listLedgerEntries({ accountId, pageSize, ...filter, pageToken });
    all.push(...page.entries);
    pageToken = page.nextPageToken;
  } while (pageToken !== "" && all.length < entriesMax);
  return all;
}

const head = [
  "time",
  "transaction_id",
  "kind",
  "amount_usd",
  "balance_after_usd",
  "reference",
  "reason",
];

function cellsOf(entry: LedgerEntry): string[] {
  const amount = (money: LedgerEntry["amount"]): string =>
    money === undefined ? "" : exactUsd(nanosOf(money)).replace(" USD", "");
  return [
    entry.createTime ? timestampDate(entry.createTime).toISOString() : "",
    entry.transactionId,
    LedgerKindSchema.value[entry.kind]?.localName.toLowerCase() ?? "",
    amount(entry.amount),
    amount(entry.balanceAfter),
    entry.reference,
    entry.reason,
  ];
}
