/** The filters of lists and charts: a bar, and the fields in it. */
import { clsx } from "clsx";
import { type HTMLInputTypeAttribute, type ReactNode, useState } from "react";
import { useText } from "../common/language.tsx";
import { type RangeName, rangeNames } from "../common/search.ts";
import { allZones, localZone } from "../common/time.ts";
import { Button } from "./button.tsx";
import { Segments, SelectField, TextField } from "./field.tsx";
import { Form } from "./form.tsx";
import type { Choice } from "./menu.tsx";

/**
 * The bar above a list. On narrow windows it has two fields per row; choices and searches use the
 * full width.
 */
export function FilterBar({
  label,
  onClear,
  isBelowHead = false,
  children,
}: {
  /** The name of the filter. */
  label: string;
  /** Clears all filters. Without it there is no button. */
  onClear?: (() => void) | undefined;
  /** Whether it follows the head of a card. */
  isBelowHead?: boolean;
  children: ReactNode;
}) {
  const { common } = useText();
  return (
    <div
      role="search"
      aria-label={`${label}: ${common.filters}`}
      className={clsx(
        "grid grid-cols-2 gap-2 border-b border-line sm:flex sm:flex-wrap sm:items-start",
        "[&>[role=group]]:col-span-2 [&>[role=group]]:justify-self-start",
        isBelowHead ? "px-5 pb-4" : "p-4",
      )}
    >
      {children}
      {onClear !== undefined && (
        <Button tone="quiet" onClick={onClear}>
          {common.clearFilters}
        </Button>
      )}
    </div>
  );
}

/** A choice of one value, or of none. */
export function FilterSelect<Value extends string>({
  any,
  value,
  choices,
  onChoose,
  isLabelHidden = true,
  className = "sm:w-40",
  label,
}: {
  label: string;
  /** The choice that filters by nothing. */
  any: string;
  value: Value | undefined;
  choices: readonly Choice<Value>[];
  onChoose: (value: Value | undefined) => void;
  /** By default only screen readers get the label. */
  isLabelHidden?: boolean;
  className?: string;
}) {
  return (
    <SelectField<Value | "">
      label={label}
      isLabelHidden={isLabelHidden}
      className={className}
      value={value ?? ""}
      choices={[{ value: "", label: any }, ...choices]}
      onChoose={(chosen) => onChoose(chosen === "" ? undefined : chosen)}
    />
  );
}

/** A choice of a time range that ends now. */
export function RangeFilter({
  range,
  isCustom = false,
  onChoose,
}: {
  range: RangeName | undefined;
  /** Whether a time span is set instead of a range. */
  isCustom?: boolean;
  onChoose: (range: RangeName | undefined) => void;
}) {
  const { common } = useText();
  const custom = { value: "custom" as const, label: common.customRange };
  return (
    <FilterSelect<RangeName | "custom">
      label={common.range}
      any={common.allTime}
      value={isCustom ? "custom" : range}
      choices={[
        ...(isCustom ? [custom] : []),
        ...rangeNames.map((value) => ({ value, label: common.ranges[value] })),
      ]}
      onChoose={(value) => value !== "custom" && onChoose(value)}
    />
  );
}

const asTyped = (text: string): string => text;

/**
 * A text to filter by: an id, an address, an amount. It applies on Enter and when the field loses
 * the focus; a text that `read` refuses is marked as invalid and does not apply.
 */
export function FilterField({
  value = "",
  read = asTyped,
  onChoose,
  isLabelHidden = true,
  className,
  label,
  type = isLabelHidden ? "search" : "text",
  ...input
}: {
  label: string;
  type?: HTMLInputTypeAttribute;
  placeholder?: string;
  inputMode?: "decimal";
  /** The value of the filter. None by default. */
  value?: string | undefined;
  /** The value of a text; undefined if it is invalid. The text itself by default. */
  read?: (text: string) => string | undefined;
  onChoose: (value: string | undefined) => void;
  /** By default the label is the placeholder. */
  isLabelHidden?: boolean;
  className?: string;
}) {
  const { common } = useText();
  const [{ typed, of }, setTyped] = useState({ typed: value, of: value });
  // If the address changed in another way, by clearing all filters or by going back, that value is
  // shown.
  const text = (of === value ? typed : value).trim();
  const next = text === "" ? undefined : read(text);
  const isWrong = text !== "" && next === undefined;
  const commit = (): void => {
    if (!isWrong && (next ?? "") !== value) onChoose(next);
  };
  return (
    <Form onSubmit={commit} noValidate className={clsx("min-w-0", className)}>
      <TextField
        {...input}
        type={type}
        label={label}
        isLabelHidden={isLabelHidden}
        {...(isLabelHidden && { placeholder: label })}
        value={of === value ? typed : value}
        onChange={(event) => setTyped({ typed: event.target.value, of: value })}
        onBlur={commit}
        error={isWrong ? common.invalidValue : undefined}
        className="h-8 text-[0.8125rem]"
      />
    </Form>
  );
}

/** Searches a loaded list while typing. */
export function SearchField({
  label,
  value,
  onChange,
}: {
  label: string;
  value: string;
  onChange: (value: string) => void;
}) {
  return (
    <div className="col-span-2 w-full sm:w-64">
      <TextField
        label={label}
        isLabelHidden
        type="search"
        placeholder={label}
        value={value}
        onChange={(event) => onChange(event.target.value)}
        className="h-8"
      />
    </div>
  );
}

/** Whether any of some texts contains the search, ignoring case. */
export function isFound(search: string, ...texts: readonly string[]): boolean {
  const wanted = search.trim().toLowerCase();
  return texts.some((text) => text.toLowerCase().includes(wanted));
}

/** A choice of a time zone: the browser's, UTC, or any other. */
export function ZoneFilter({
  zone,
  onChoose,
}: {
  /** The browser's by default. */
  zone: string | undefined;
  onChoose: (zone: string | undefined) => void;
}) {
  const { common } = useText();
  const named = ["UTC", ...allZones()];
  const zones = zone === undefined || named.includes(zone) ? named : [zone, ...named];
  return (
    <FilterSelect
      label={common.zone}
      any={common.ownZone(localZone())}
      isLabelHidden={false}
      className=""
      value={zone}
      choices={zones.map((value) => ({ value, label: value.replaceAll("_", " ") }))}
      onChoose={onChoose}
    />
  );
}

/** A choice of one value, or of none, all visible. */
export function FilterSegments<Value extends string>({
  label,
  any,
  value,
  choices,
  onChoose,
}: {
  label: string;
  /** The choice that filters by nothing. */
  any: string;
  value: Value | undefined;
  choices: readonly Choice<Value>[];
  onChoose: (value: Value | undefined) => void;
}) {
  return (
    <Segments<Value | "">
      label={label}
      value={value ?? ""}
      choices={[{ value: "", label: any }, ...choices]}
      onChoose={(chosen) => onChoose(chosen === "" ? undefined : chosen)}
    />
  );
}
