/** One of several: the browser's own list, which every phone and every screen reader knows how to show. */
import { clsx } from "clsx";
import { ChevronsUpDown } from "lucide-react";
import { useId } from "react";
import type { Choice } from "./menu.tsx";

/** A list to choose from. */
export function SelectField<Value extends string>({
  label,
  isLabelHidden = false,
  value,
  choices,
  onChoose,
  className,
}: {
  label: string;
  isLabelHidden?: boolean;
  value: Value;
  choices: readonly Choice<Value>[];
  onChoose: (value: Value) => void;
  className?: string;
}) {
  const id = useId();
  return (
    <div className={clsx("min-w-0", className)}>
      <label
        htmlFor={id}
        className={isLabelHidden ? "sr-only" : "mb-1.5 block text-[0.8125rem] font-medium"}
      >
        {label}
      </label>
      <span className="relative block">
        <select
          id={id}
          value={value}
          onChange={(event) => onChoose(event.target.value as Value)}
          className="field h-8 appearance-none truncate pr-8 text-[0.8125rem]"
        >
          {choices.map(({ value: each, label: text }) => (
            <option key={each} value={each}>
              {text}
            </option>
          ))}
        </select>
        <ChevronsUpDown
          aria-hidden="true"
          className="pointer-events-none absolute top-2 right-2.5 size-4 text-muted"
        />
      </span>
    </div>
  );
}

/** One of a few, all in sight. */
export function Segments<Value extends string>({
  label,
  value,
  choices,
  onChoose,
}: {
  label: string;
  value: Value;
  choices: readonly Choice<Value>[];
  onChoose: (value: Value) => void;
}) {
  return (
    <div
      role="group"
      aria-label={label}
      className="inline-flex max-w-full overflow-x-auto rounded-lg border border-line bg-sunken p-0.5"
    >
      {choices.map((choice) => (
        <button
          key={choice.value}
          type="button"
          aria-pressed={choice.value === value}
          onClick={() => onChoose(choice.value)}
          className={clsx(
            "h-7 rounded-md px-2.5 text-[0.8125rem] font-medium whitespace-nowrap transition-colors",
            choice.value === value
              ? "bg-surface text-ink shadow-card"
              : "text-muted hover:text-ink",
          )}
        >
          {choice.label}
        </button>
      ))}
    </div>
  );
}
