/** The filters of the ledger. */
import { useText } from "../language.tsx";
import {
  defined,
  ledgerKinds,
  type LedgerSearch,
  oneOf,
  type RangeName,
  ranges,
} from "../search.ts";
import { Button } from "../ui/button.tsx";
import { SelectField } from "../ui/select.tsx";
import { kindsOf } from "./filter.ts";

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
