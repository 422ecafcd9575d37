/** A text that a list is filtered by: an id, an address. */
import { clsx } from "clsx";
import { type FormEvent, useState } from "react";
import { TextField } from "./field.tsx";

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
