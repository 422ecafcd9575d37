/**
 * The filters of the call log, from the address to the contract. The rarer ones are hidden behind a
 * button, unless one of them is set.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { clsx } from "clsx";
import { ChevronDown } from "lucide-react";
import { type ReactNode, useId, useState } from "react";
import {
  CallEnding,
  type CallFilterSchema,
  CallOutcome,
} from "../../../gen/uas/billing/v1/call_pb.ts";
import { errorCodeOf } from "../common/contract.ts";
import { useText } from "../common/language.tsx";
import { moneyOf, parseUsd } from "../common/money.ts";
import {
  type CallSearch,
  defined,
  endingNames,
  hasFilters,
  ranges,
  statusClasses,
} from "../common/search.ts";
import { localZone, momentIn, timestampOf, wallTime } from "../common/time.ts";
import { KeyFilter } from "../keys/keys.tsx";
import { ModelFilter } from "../models/prices.tsx";
import { Button } from "../ui/button.tsx";
import {
  FilterBar,
  FilterField,
  FilterSelect,
  RangeFilter,
  ZoneFilter,
} from "../ui/filter-bar.tsx";

type Change = { [Name in keyof CallSearch]: CallSearch[Name] | undefined };

/** The bar with the filters of a call log. */
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
  const { calls: text } = useText();
  const set = (change: Change): void => onSearch(defined({ ...search, ...change }));
  return (
    <FilterBar label={text.title} onClear={hasFilters(search) ? () => onSearch({}) : undefined}>
      <RangeFilter
        range={search.range}
        isCustom={search.from !== undefined || search.to !== undefined}
        onChoose={(range) => set({ range, from: undefined, to: undefined })}
      />
      <FilterSelect
        label={text.outcome}
        any={text.anyOutcome}
        className="sm:w-36"
        value={search.outcome}
        choices={[
          { value: "succeeded", label: text.succeeded },
          { value: "failed", label: text.failed },
        ]}
        onChoose={(outcome) => set({ outcome })}
      />
      <ModelFilter value={search.model} onChoose={(model) => set({ model })} />
      {accountId !== "" && (
        <KeyFilter accountId={accountId} value={search.key} onChoose={(key) => set({ key })} />
      )}
      {children}
      <FilterField
        label={text.fields.requestId}
        value={search.request}
        onChoose={(request) => set({ request })}
        className="col-span-2 min-w-44 flex-1"
      />
      <MoreFilters search={search} onChange={set} />
    </FilterBar>
  );
}

/** The members of a search that the button hides. */
const moreNames = [
  "from",
  "to",
  "zone",
  "status",
  "ending",
  "code",
  "vendor",
  "cost",
] as const satisfies readonly (keyof CallSearch)[];

function MoreFilters({
  search,
  onChange,
}: {
  search: CallSearch;
  onChange: (change: Change) => void;
}) {
  const { calls: text } = useText();
  const id = useId();
  const count = moreNames.filter((name) => search[name] !== undefined).length;
  const [isOpen, setOpen] = useState(count > 0);
  return (
    <>
      <Button aria-expanded={isOpen} aria-controls={id} onClick={() => setOpen(!isOpen)}>
        {text.moreFilters(count)}
        <ChevronDown aria-hidden="true" className={clsx(isOpen && "rotate-180")} />
      </Button>
      <div
        id={id}
        hidden={!isOpen}
        className="order-last col-span-2 grid w-full grid-cols-1 gap-3 pt-2 sm:grid-cols-2 lg:grid-cols-4"
      >
        {isOpen && (
          <>
            <TimeFields search={search} onChange={onChange} />
            <OutcomeFields search={search} onChange={onChange} />
          </>
        )}
      </div>
    </>
  );
}

/** The value of a field for local times. */
const minuteOf = (wall: string | undefined): string | undefined => wall?.padEnd(16, "T00:00");

function TimeFields({
  search,
  onChange,
}: {
  search: CallSearch;
  onChange: (change: Change) => void;
}) {
  const { common } = useText();
  const time = { type: "datetime-local", isLabelHidden: false, read: wallTime } as const;
  return (
    <>
      <FilterField
        {...time}
        label={common.from}
        value={minuteOf(search.from)}
        onChoose={(from) => onChange({ from, range: undefined })}
      />
      <FilterField
        {...time}
        label={common.until}
        value={minuteOf(search.to)}
        onChoose={(to) => onChange({ to, range: undefined })}
      />
      <ZoneFilter zone={search.zone} onChoose={(zone) => onChange({ zone })} />
    </>
  );
}

function OutcomeFields({
  search,
  onChange,
}: {
  search: CallSearch;
  onChange: (change: Change) => void;
}) {
  const { calls: text } = useText();
  const shown = { isLabelHidden: false, className: "" };
  return (
    <>
      <FilterSelect
        {...shown}
        label={text.status}
        any={text.anyStatus}
        value={search.status}
        choices={statusClasses.map((value) => ({ value, label: value }))}
        onChoose={(status) => onChange({ status })}
      />
      <FilterSelect
        {...shown}
        label={text.ending}
        any={text.anyEnding}
        value={search.ending}
        choices={endingNames.map((value) => ({
          value,
          label: text.endings[endings[value]] ?? value,
        }))}
        onChoose={(ending) => onChange({ ending })}
      />
      <FilterField
        {...shown}
        label={text.errorCode}
        placeholder="model_not_found"
        value={search.code}
        read={(typed) => (errorCodeOf(typed.trim()) ? typed.trim() : undefined)}
        onChoose={(code) => onChange({ code })}
      />
      <FilterField
        {...shown}
        label={text.fields.vendor}
        value={search.vendor}
        onChoose={(vendor) => onChange({ vendor })}
      />
      <FilterField
        {...shown}
        label={text.costMin}
        placeholder="0.01"
        inputMode="decimal"
        value={search.cost}
        read={(typed) => ((parseUsd(typed) ?? 0n) > 0n ? typed.replace("$", "").trim() : undefined)}
        onChoose={(cost) => onChange({ cost })}
      />
    </>
  );
}

const outcomes = { succeeded: CallOutcome.SUCCEEDED, failed: CallOutcome.FAILED } as const;

/** The endings by their words in addresses. */
const endings: Readonly<Record<NonNullable<CallSearch["ending"]>, CallEnding>> = {
  completed: CallEnding.COMPLETED,
  refused: CallEnding.REFUSED,
  upstream_refused: CallEnding.UPSTREAM_REFUSED,
  upstream_failed: CallEnding.UPSTREAM_FAILED,
  client_gone: CallEnding.CLIENT_GONE,
  gateway_stopped: CallEnding.GATEWAY_STOPPED,
  gateway_failed: CallEnding.GATEWAY_FAILED,
  out_of_balance: CallEnding.OUT_OF_BALANCE,
  gateway_lost: CallEnding.GATEWAY_LOST,
  cancelled: CallEnding.CANCELLED,
  key_disabled: CallEnding.KEY_DISABLED,
  key_deleted: CallEnding.KEY_DELETED,
  key_expired: CallEnding.KEY_EXPIRED,
};

const statuses = {
  "2xx": { statusMin: 200, statusMax: 299 },
  "4xx": { statusMin: 400, statusMax: 499 },
  "5xx": { statusMin: 500, statusMax: 599 },
} as const;

/**
 * The filter of a request for a page's search. A range counts back from now; a span takes
 * precedence over it.
 */
export function filterOf(search: CallSearch): MessageInitShape<typeof CallFilterSchema> {
  const { model, key, outcome, code, request, status, ending, vendor, cost } = search;
  const costNanos = cost === undefined ? undefined : parseUsd(cost);
  return {
    ...timesOf(search),
    ...(status && statuses[status]),
    ...(ending && { ending: endings[ending] }),
    ...(costNanos !== undefined && { costMin: moneyOf(costNanos) }),
    vendor: vendor ?? "",
    ...(outcome && { outcome: outcomes[outcome] }),
    model: model ?? "",
    keyId: key ?? "",
    errorCode: errorCodeOf(code ?? ""),
    requestId: request ?? "",
  };
}

function timesOf({ range, from, to, zone = localZone() }: CallSearch) {
  if (from === undefined && to === undefined) {
    return range && { fromTime: timestampOf(Date.now() - ranges[range]) };
  }
  return {
    ...(from !== undefined && { fromTime: timestampOf(momentIn(zone, from)) }),
    ...(to !== undefined && { toTime: timestampOf(momentIn(zone, to)) }),
  };
}
