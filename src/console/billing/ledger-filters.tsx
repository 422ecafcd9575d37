/** The filters of the ledger. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { LedgerKind } from "../../../gen/uas/billing/v1/billing_pb.ts";
import type { ListLedgerEntriesRequestSchema } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { useText } from "../common/language.tsx";
import {
  defined,
  ledgerKinds,
  type LedgerSearch,
  oneOf,
  type RangeName,
  ranges,
} from "../common/search.ts";
import { timestampOf } from "../common/time.ts";
import { Button } from "../ui/button.tsx";
import { SelectField } from "../ui/field.tsx";

/** The row of filters. Each change is in the address at once. */
export function LedgerFilters({
  search,
  onSearch,
}: {
  search: LedgerSearch;
  onSearch: (search: LedgerSearch) => void;
}) {
  const { billing: text, common } = useText();
  const rangeNames = Object.keys(ranges) as RangeName[];
  return (
    <div
      role="search"
      aria-label={`${text.ledger}: ${common.filters}`}
      className="grid grid-cols-2 gap-2 border-b border-line px-5 pb-4 sm:flex sm:flex-wrap"
    >
      <SelectField
        label={text.kind}
        isLabelHidden
        className="sm:w-48"
        value={search.kind ?? ""}
        choices={[
          { value: "", label: text.anyKind },
          ...ledgerKinds.map((value) => ({
            value,
            label: value === "moved" ? text.noCharges : (text.kinds[kindsOf[value][0] ?? 0] ?? ""),
          })),
        ]}
        onChoose={(value) => onSearch(defined({ ...search, kind: oneOf(value, ledgerKinds) }))}
      />
      <SelectField
        label={common.range}
        isLabelHidden
        className="sm:w-40"
        value={search.range ?? ""}
        choices={[
          { value: "", label: common.all },
          ...rangeNames.map((value) => ({ value, label: common.ranges[value] })),
        ]}
        onChoose={(value) => onSearch(defined({ ...search, range: oneOf(value, rangeNames) }))}
      />
      {Object.keys(search).length > 0 && (
        <Button tone="quiet" onClick={() => onSearch({})}>
          {common.clearFilters}
        </Button>
      )}
    </div>
  );
}

/** The kinds that each choice stands for. */
const kindsOf: Readonly<Record<NonNullable<LedgerSearch["kind"]>, readonly LedgerKind[]>> = {
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
