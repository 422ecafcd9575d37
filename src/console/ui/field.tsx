/** Fields of forms: always with a label that is seen or at least heard. */
import { clsx } from "clsx";
import { type ComponentProps, type ReactNode, useId } from "react";

interface FieldOwn {
  readonly label: ReactNode;
  /** Hides the label from the eye where the place says what it is. */
  readonly isLabelHidden?: boolean | undefined;
  readonly hint?: ReactNode;
  /** What is wrong with the value, and how to make it right. */
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
