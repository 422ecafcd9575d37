/** Fields of forms, always with a label, visible or for screen readers only. */
import { clsx } from "clsx";
import { ChevronsUpDown } from "lucide-react";
import { type ComponentProps, type ReactNode, useId } from "react";
import type { Choice } from "./menu.tsx";

interface FieldOwn {
  readonly label: ReactNode;
  /** Whether only screen readers get the label. Visible by default. */
  readonly isLabelHidden?: boolean | undefined;
  readonly hint?: ReactNode;
  /** The error in the value, and how to correct it. */
  readonly error?: string | undefined;
}

export interface TextFieldProps extends FieldOwn, Omit<ComponentProps<"input">, "id"> {}

/** A line of text. */
export function TextField({
  label,
  isLabelHidden,
  hint,
  error,
  className,
  ...input
}: TextFieldProps) {
  const { id, describedBy, frame } = useFrame({ label, isLabelHidden, hint, error });
  return frame(
    <input
      autoComplete="off"
      {...input}
      id={id}
      aria-invalid={error !== undefined || undefined}
      aria-describedby={describedBy}
      className={clsx("field", className)}
    />,
  );
}

export interface AreaFieldProps extends FieldOwn, Omit<ComponentProps<"textarea">, "id"> {}

/** Several lines of text. */
export function AreaField({
  label,
  isLabelHidden,
  hint,
  error,
  className,
  ...input
}: AreaFieldProps) {
  const { id, describedBy, frame } = useFrame({ label, isLabelHidden, hint, error });
  return frame(
    <textarea
      {...input}
      id={id}
      aria-invalid={error !== undefined || undefined}
      aria-describedby={describedBy}
      className={clsx("field h-auto py-2", className)}
    />,
  );
}

/** A box to tick. */
export function CheckField({
  label,
  hint,
  ...input
}: { label: ReactNode; hint?: ReactNode } & Omit<ComponentProps<"input">, "id" | "type">) {
  const id = useId();
  return (
    <div className="flex items-start gap-2.5">
      <input
        {...input}
        id={id}
        type="checkbox"
        className="mt-0.5 size-4 shrink-0 accent-(--accent)"
      />
      <label htmlFor={id} className="min-w-0">
        <span className="block">{label}</span>
        {hint !== undefined && <span className="block text-xs text-muted">{hint}</span>}
      </label>
    </div>
  );
}

function useFrame({ label, isLabelHidden = false, hint, error }: FieldOwn): {
  id: string;
  describedBy: string | undefined;
  frame: (control: ReactNode) => ReactNode;
} {
  const id = useId();
  const told = error ?? hint;
  const noteId = `${id}-note`;
  return {
    id,
    describedBy: told === undefined ? undefined : noteId,
    frame: (control) => (
      <div className="min-w-0">
        <label
          htmlFor={id}
          className={isLabelHidden ? "sr-only" : "mb-1.5 block text-[0.8125rem] font-medium"}
        >
          {label}
        </label>
        {control}
        {told !== undefined && (
          <p
            id={noteId}
            role={error === undefined ? undefined : "alert"}
            className={clsx("mt-1.5 text-xs", error === undefined ? "text-muted" : "text-bad")}
          >
            {told}
          </p>
        )}
      </div>
    ),
  };
}

/** The browser's select element, which every phone and screen reader supports. */
export function SelectField<Value extends string>({
  label,
  isLabelHidden = false,
  hint,
  error,
  value,
  choices,
  onChoose,
  className,
}: FieldOwn & {
  label: string;
  value: Value;
  choices: readonly Choice<Value>[];
  onChoose: (value: Value) => void;
  className?: string;
}) {
  const { id, describedBy, frame } = useFrame({ label, isLabelHidden, hint, error });
  return (
    <div className={clsx("min-w-0", className)}>
      {frame(
        <span className="relative block">
          <select
            id={id}
            value={value}
            aria-invalid={error !== undefined || undefined}
            aria-describedby={describedBy}
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
        </span>,
      )}
    </div>
  );
}

/** A choice of one of a few, all visible. */
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

/** A choice of one of a few in a form, with a hint on the chosen one. */
export function SegmentsField<Value extends string>({
  hint,
  ...segments
}: ComponentProps<typeof Segments<Value>> & { hint: ReactNode }) {
  return (
    <div>
      <Segments {...segments} />
      <p className="mt-1.5 text-xs text-muted">{hint}</p>
    </div>
  );
}
