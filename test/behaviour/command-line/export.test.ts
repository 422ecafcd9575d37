import type { ConnectRouter } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { LedgerKind } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { CallService } from "../../../gen/uas/billing/v1/call_service_pb.ts";
import { accountId, keyId } from "./sample.ts";
import { run } from "./support.ts";

const other = keyId;

/** Two accounts with entries of 2 and -1 nano-USD on two pages; exports of calls in two files. */
const routes = (router: ConnectRouter): void => {
  router.service(AccountService, {
    getAccount: () => ({ account: { accountId } }),
    listAccounts: ({ pageToken }) =>
      pageToken === ""
        ? { accounts: [{ accountId }], nextPageToken: "next" }
        : { accounts: [{ accountId: other }] },
  });
  router.service(BillingService, {
    listLedgerEntries: ({ pageToken }) =>
      pageToken === ""
        ? { entries: [entry(LedgerKind.TOP_UP, 2n)], nextPageToken: "next" }
        : { entries: [entry(LedgerKind.CHARGE, -1n)] },
  });
  router.service(CallService, {
    async *exportCalls({ pageToken }) {
      const head = "callId,cost\r\n";
      const line = pageToken === "" ? "a,1\r\n" : "b,2\r\n";
      yield { data: Buffer.from(head + line), nextPageToken: "" };
      yield { data: Buffer.from("c,3\r\n"), nextPageToken: pageToken === "" ? "next" : "" };
    },
  });
};

function entry(kind: LedgerKind, amountNanos: bigint) {
  return { transactionId: keyId, kind, amount: { amountNanos }, reference: '=a,"b' };
}

it("export calls writes all files of the export as one, with one header", async () => {
  const ran = await run(["export", "calls"], { routes });
  expect(ran).toMatchObject({ code: 0, err: "" });
  expect(ran.out).toBe("callId,cost\r\na,1\r\nc,3\r\nb,2\r\nc,3\r\n");
});

it("export ledger writes every entry of one account, or of all accounts, as CSV", async () => {
  const one = await run(["export", "ledger", "--account", accountId], { routes });
  const [head, ...lines] = one.out.split("\r\n").slice(0, -1);
  expect(head).toBe(
    "createdAt,accountId,transactionId,kind,amount,currency,balanceAfter,reference,reason",
  );
  expect(lines).toHaveLength(2);
  // A spreadsheet would run a reference that begins with "=".
  expect(lines[0]).toContain(`top_up,0.000000002,USD,,"'=a,""b",`);
  const all = await run(["export", "ledger"], { routes });
  expect(all.out.split("\r\n").slice(1, -1)).toHaveLength(4);
});

it("export ledger writes JSON lines", async () => {
  const ran = await run(["export", "ledger", "--format", "jsonl", "--from", "30d"], { routes });
  const lines = ran.out.split("\n").slice(0, -1);
  expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    { accountId, amount: "0.000000002", kind: "top_up" },
    { accountId, amount: "-0.000000001", kind: "charge" },
    { accountId: other },
    { accountId: other },
  ]);
});
