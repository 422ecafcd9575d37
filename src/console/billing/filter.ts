/** Filters of the ledger, from the address to the contract. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { LedgerKind } from "../../../gen/uas/billing/v1/billing_pb.ts";
import type { ListLedgerEntriesRequestSchema } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { type LedgerSearch, ranges } from "../search.ts";
import { timestampOf } from "../time.ts";

/** The kinds that each choice stands for. */
export const kindsOf: Readonly<Record<NonNullable<LedgerSearch["kind"]>, readonly LedgerKind[]>> = {
  moved: [
    LedgerKind.TOP_UP,
    LedgerKind.PROMO,
    LedgerKind.REFUND,
    LedgerKind.ADJUSTMENT,
    LedgerKind.LATE_SETTLEMENT,
  ],
  charge: [LedgerKind.CHARGE],
  top_up: [LedgerKind.TOP_UP],
  promo: [LedgerKind.PROMO],
  refund: [LedgerKind.REFUND],
  adjustment: [LedgerKind.ADJUSTMENT],
  late_settlement: [LedgerKind.LATE_SETTLEMENT],
};

/** The members of a request that a page's search stands for. A range counts back from now. */
export function ledgerFilterOf({
  range,
  kind,
}: LedgerSearch): MessageInitShape<typeof ListLedgerEntriesRequestSchema> {
  return {
    ...(range && { fromTime: timestampOf(Date.now() - ranges[range]) }),
    ...(kind && { kinds: [...kindsOf[kind]] }),
  };
}
