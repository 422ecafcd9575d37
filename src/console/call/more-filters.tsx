/** The filters of the call log that are asked for now and then: behind a button, open where one of them is set. */
import { ChevronDown } from "lucide-react";
import { type FormEvent, type HTMLInputTypeAttribute, useId, useState } from "react";
import { clsx } from "clsx";
import { useText } from "../language.tsx";
import { type CallSearch, endingNames, oneOf, statusClasses, text as textOf } from "../search.ts";
import { parseUsd } from "../money.ts";
import { Button } from "../ui/button.tsx";
import { TextField } from "../ui/field.tsx";
import { SelectField } from "../ui/select.tsx";
import { wallTime } from "../zone.ts";
import { ZoneField } from "../zone-field.tsx";
import { endings } from "./filter.ts";
import { errorCodeOf } from "../error-word.ts";

/** The members of a search that stand here. */
export const moreNames = [
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
export function MoreFilters({
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
        read={(value) => (errorCodeOf(value.trim()) ? value.trim() : undefined)}
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
