/** Reads the movements of an account: pages by the keyset, narrowed to kinds and to a time. */
import type { HandlerContext } from "@connectrpc/connect";
import { LedgerKind } from "../../gen/uas/billing/v1/billing_pb.ts";
import type { ListLedgerEntriesRequest } from "../../gen/uas/billing/v1/billing_service_pb.ts";
import { firstId } from "../db/partition.ts";
import { cutPage, readPage } from "../page-token.ts";
import { isUuid } from "../uuid.ts";
import { invalid } from "./invalid.ts";
import { entryMessage, type EntryRow } from "./message.ts";
import type { Queryable } from "./queryable.ts";
import { momentOf, parseEnum } from "./range.ts";
import { parseAccount } from "./scope.ts";
import { Where } from "./where.ts";

const select =
  "select e.txn_id, e.kind, e.amount, e.reference, e.create_time, e.balance_after, b.reason " +
  "from ledger_entry e " +
  "left join booking b on b.account_id = e.account_id and b.reference = e.reference";

/** Reads a page of them. @throws GatewayError INVALID_REQUEST, NOT_FOUND where the account is not the caller's */
export async function listEntries(
  pool: Queryable,
  request: ListLedgerEntriesRequest,
  context: Pick<HandlerContext, "values">,
) {
  const accountId = parseAccount(request.accountId, context);
  const page = readPage(request, { isKey: isUuid });
  const where = new Where().also("e.account = 1").and("e.account_id = ?", accountId);
  addKinds(where, request.kinds);
  const { fromTime, toTime } = request;
  where
    .and("e.txn_id >= ?", fromTime && firstId(new Date(momentOf(fromTime))))
    .and("e.txn_id < ?", toTime && firstId(new Date(momentOf(toTime))))
    .and("e.txn_id < ?", page.after);
  const limit = where.value(page.limit + 1);
  const text = `${select} where ${where.text} order by e.txn_id desc limit ${limit}`;
  const { rows } = await pool.query<EntryRow>(text, where.values);
  const { items, nextPageToken } = cutPage(page, rows, (row) => row.txn_id);
  return { entries: items.map(entryMessage), nextPageToken };
}

/** Nearly all movements are charges: what else there is has an index of its own, which the first condition names. */
function addKinds(where: Where, kinds: readonly LedgerKind[]): void {
  if (kinds.length === 0) return;
  for (const kind of kinds) {
    if (parseEnum("kinds", kind, LedgerKind) === LedgerKind.UNSPECIFIED) {
      throw invalid("kinds", "kinds must name kinds: leave it out for every kind");
    }
  }
  if (!kinds.includes(LedgerKind.CHARGE)) where.also(`e.kind <> ${LedgerKind.CHARGE}`);
  where.and("e.kind = any(?::smallint[])", kinds);
}
