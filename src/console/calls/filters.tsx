/** The filters of the call log; the rarer ones behind a button, open where one of them is set. */
import { clsx } from "clsx";
import { ChevronDown } from "lucide-react";
import {
  type FormEvent,
  type HTMLInputTypeAttribute,
  type ReactNode,
  useId,
  useState,
} from "react";
import { useText } from "../common/language.tsx";
import { parseUsd } from "../common/money.ts";
import {
  type CallSearch,
  defined,
  endingNames,
  oneOf,
  type RangeName,
  ranges,
  statusClasses,
  text as textOf,
} from "../common/search.ts";
import { wallTime } from "../common/time.ts";
import { useKeyNames } from "../keys/keys.tsx";
import { usePrices } from "../models/prices.tsx";
import { Button } from "../ui/button.tsx";
import { SelectField, TextField } from "../ui/field.tsx";
import { FilterField, ZoneField } from "../ui/filter-bar.tsx";
import { endings } from "./filter.ts";

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

/** The members of a search that stand here. */
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

type Change = { [Name in keyof CallSearch]: CallSearch[Name] | undefined };

/** The button, and the filters below the others. */
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
        {isOpen && <Fields search={search} onChange={onChange} />}
      </div>
    </>
  );
}

function Fields({ search, onChange }: { search: CallSearch; onChange: (change: Change) => void }) {
  const { calls: text, common } = useText();
  return (
    <>
      <WrittenField
        label={common.from}
        type="datetime-local"
        value={search.from?.padEnd(16, "T00:00")}
        read={wallTime}
        onChange={(from) => onChange({ from, range: undefined })}
      />
      <WrittenField
        label={common.until}
        type="datetime-local"
        value={search.to?.padEnd(16, "T00:00")}
        read={wallTime}
        onChange={(to) => onChange({ to, range: undefined })}
      />
      <ZoneField zone={search.zone} onChoose={(zone) => onChange({ zone })} />
      <SelectField
        label={text.status}
        value={search.status ?? ""}
        choices={[
          { value: "", label: text.anyStatus },
          ...statusClasses.map((value) => ({ value, label: value })),
        ]}
        onChoose={(value) => onChange({ status: oneOf(value, statusClasses) })}
      />
      <SelectField
        label={text.ending}
        value={search.ending ?? ""}
        choices={[
          { value: "", label: text.anyEnding },
          ...endingNames.map((value) => ({ value, label: text.endings[endings[value]] ?? value })),
        ]}
        onChoose={(value) => onChange({ ending: oneOf(value, endingNames) })}
      />
      <WrittenField
        label={text.errorCode}
        placeholder="model_not_found"
        value={search.code}
        read={textOf}
        onChange={(code) => onChange({ code })}
      />
      <WrittenField
        label={text.vendor}
        value={search.vendor}
        read={textOf}
        onChange={(vendor) => onChange({ vendor })}
      />
      <WrittenField
        label={text.costMin}
        placeholder="0.01"
        inputMode="decimal"
        value={search.cost}
        read={(value) => ((parseUsd(value) ?? 0n) > 0n ? value.replace("$", "").trim() : undefined)}
        onChange={(cost) => onChange({ cost })}
      />
    </>
  );
}

/** A field whose value counts when it is left, or by Enter. What makes no sense is told and does not count. */
function WrittenField({
  value = "",
  read,
  onChange,
  ...field
}: {
  label: string;
  type?: HTMLInputTypeAttribute;
  placeholder?: string;
  inputMode?: "decimal";
  value: string | undefined;
  /** What a text stands for; `undefined`: nothing. */
  read: (text: string) => string | undefined;
  onChange: (value: string | undefined) => void;
}) {
  const { calls: text } = useText();
  const [{ written, of }, setWritten] = useState({ written: value, of: value });
  // The address has changed: by the button that clears all, or by going back.
  const shown = of === value ? written : value;
  const isWrong = shown.trim() !== "" && read(shown.trim()) === undefined;
  const commit = (): void => {
    const next = shown.trim() === "" ? undefined : read(shown.trim());
    if (!isWrong && (next ?? "") !== value) onChange(next);
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    commit();
  };
  return (
    <form onSubmit={submit} noValidate>
      <TextField
        {...field}
        value={shown}
        onChange={(event) => setWritten({ written: event.target.value, of: value })}
        onBlur={commit}
        error={isWrong ? text.notUnderstood : undefined}
        className="h-8 text-[0.8125rem]"
      />
    </form>
  );
}
