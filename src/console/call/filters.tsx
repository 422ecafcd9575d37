/** The filters of the call log. */
import type { ReactNode } from "react";
import { useKeyNames } from "../key/use-keys.ts";
import { useText } from "../language.tsx";
import { usePrices } from "../models.ts";
import { type CallSearch, defined, oneOf, type RangeName, ranges } from "../search.ts";
import { Button } from "../ui/button.tsx";
import { FilterField } from "../ui/filter-field.tsx";
import { SelectField } from "../ui/select.tsx";
import { MoreFilters } from "./more-filters.tsx";

/** The row of filters. Each change is in the address at once. */
export function CallFilters({
  accountId,
  search,
  onSearch,
  children,
}: {
  /** Empty: all accounts. */
  accountId: string;
  search: CallSearch;
  onSearch: (search: CallSearch) => void;
  /** More filters. */
  children?: ReactNode;
}) {
  const { calls: text, common } = useText();
  const prices = usePrices();
  const models = [
    ...new Set([
      ...(prices.data ?? []).map((each) => each.modelKey),
      ...(search.model ? [search.model] : []),
    ]),
  ];
  const set = (change: { [Name in keyof CallSearch]: CallSearch[Name] | undefined }): void =>
    onSearch(defined({ ...search, ...change }));
  const rangeNames = Object.keys(ranges) as RangeName[];
  const isSpan = search.from !== undefined || search.to !== undefined;
  return (
    <div
      role="search"
      aria-label={common.filters}
      className="grid grid-cols-2 gap-2 border-b border-line p-4 sm:flex sm:flex-wrap"
    >
      <SelectField
        label={common.range}
        isLabelHidden
        className="sm:w-40"
        value={isSpan ? "custom" : (search.range ?? "")}
        choices={[
          { value: "", label: common.all },
          ...(isSpan ? [{ value: "custom", label: common.customRange }] : []),
          ...rangeNames.map((value) => ({ value, label: common.ranges[value] })),
        ]}
        onChoose={(value) =>
          set({ range: oneOf(value, rangeNames), from: undefined, to: undefined })
        }
      />
      <SelectField
        label={text.outcome}
        isLabelHidden
        className="sm:w-36"
        value={search.outcome ?? ""}
        choices={[
          { value: "", label: text.outcomeAny },
          { value: "succeeded", label: text.succeeded },
          { value: "failed", label: text.failed },
        ]}
        onChoose={(value) => set({ outcome: oneOf(value, ["succeeded", "failed"]) })}
      />
      <SelectField
        label={common.model}
        isLabelHidden
        className="sm:w-40"
        value={search.model ?? ""}
        choices={[
          { value: "", label: text.anyModel },
          ...models.map((value) => ({ value, label: value })),
        ]}
        onChoose={(value) => set({ model: value || undefined })}
      />
      {accountId !== "" && (
        <KeyFilter accountId={accountId} search={search} onChoose={(key) => set({ key })} />
      )}
      {children}
      <FilterField
        key={search.request}
        label={text.request}
        value={search.request}
        onChoose={(request) => set({ request })}
        className="col-span-2 min-w-44 flex-1"
      />
      <MoreFilters search={search} onChange={set} />
      {Object.keys(search).length > 0 && (
        <Button tone="quiet" onClick={() => onSearch({})}>
          {common.clearFilters}
        </Button>
      )}
    </div>
  );
}

function KeyFilter({
  accountId,
  search,
  onChoose,
}: {
  accountId: string;
  search: CallSearch;
  onChoose: (key: string | undefined) => void;
}) {
  const { calls: text, common } = useText();
  const keyNames = useKeyNames(accountId);
  return (
    <SelectField
      label={common.key}
      isLabelHidden
      className="sm:w-40"
      value={search.key ?? ""}
      choices={[
        { value: "", label: text.anyKey },
        ...[...keyNames].map(([value, label]) => ({ value, label })),
      ]}
      onChoose={(value) => onChoose(value || undefined)}
    />
  );
}
