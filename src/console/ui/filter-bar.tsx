/** Filters of lists and charts. */
import { clsx } from "clsx";
import { type FormEvent, useState } from "react";
import { useText } from "../common/language.tsx";
import { allZones, localZone } from "../common/time.ts";
import { SelectField, TextField } from "./field.tsx";

/** The field. What is typed counts once it is sent or left. A value that others set needs a `key` of it. */
export function FilterField({
  label,
  value = "",
  onChoose,
  className,
}: {
  label: string;
  /** What is filtered by. Default: nothing. */
  value?: string | undefined;
  onChoose: (value: string | undefined) => void;
  className?: string;
}) {
  const [typed, setTyped] = useState(value);
  const choose = (): void => {
    if (typed.trim() !== value) onChoose(typed.trim() || undefined);
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    choose();
  };
  return (
    <form onSubmit={submit} className={clsx("min-w-0", className)}>
      <TextField
        label={label}
        isLabelHidden
        type="search"
        placeholder={label}
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
        onBlur={choose}
        className="h-8 font-mono text-xs"
      />
    </form>
  );
}

/** The field. */
export function ZoneField({
  zone,
  onChoose,
  isLabelHidden = false,
  className,
}: {
  /** Absent: the browser's. */
  zone: string | undefined;
  onChoose: (zone: string | undefined) => void;
  isLabelHidden?: boolean;
  className?: string;
}) {
  const { common } = useText();
  const named = ["UTC", ...allZones()];
  const zones = zone === undefined || named.includes(zone) ? named : [zone, ...named];
  return (
    <SelectField
      label={common.zone}
      isLabelHidden={isLabelHidden}
      {...(className !== undefined && { className })}
      value={zone ?? ""}
      choices={[
        { value: "", label: common.ownZone(localZone()) },
        ...zones.map((value) => ({ value, label: value.replaceAll("_", " ") })),
      ]}
      onChoose={(value) => onChoose(value || undefined)}
    />
  );
}
