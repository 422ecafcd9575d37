/** Fields of the document: each shows one value and its problems, and changes it as it is typed. */
import type { ReactNode } from "react";
import { CheckField, SelectField, TextField } from "../ui/field.tsx";
import { Button } from "../ui/button.tsx";
import type { Path } from "./document.ts";
import { useEditor, useField } from "./editor.tsx";
import { pathText } from "./problems.ts";
import { useConfigurationText } from "./text.ts";

interface FieldProps {
  readonly path: Path;
  readonly label: string;
  readonly hint?: ReactNode;
  readonly placeholder?: string;
}

/** A text. An empty one removes the value. */
export function TextValue({ path, label, hint, placeholder }: FieldProps) {
  const { value, error, set } = useField(path);
  return (
    <TextField
      label={label}
      hint={hint}
      error={error}
      placeholder={placeholder}
      value={value}
      spellCheck={false}
      onChange={({ target }) => set(target.value === "" ? undefined : target.value)}
    />
  );
}

/** A whole number. Other texts are written as they are, so that the check explains them. */
export function NumberValue({ path, label, hint, placeholder }: FieldProps) {
  const { value, error, set } = useField(path);
  const write = (typed: string): void => {
    if (typed === "") set(undefined);
    else set(/^\d{1,15}$/.test(typed) ? Number(typed) : typed);
  };
  return (
    <TextField
      label={label}
      hint={hint}
      error={error}
      placeholder={placeholder}
      inputMode="numeric"
      value={value}
      onChange={({ target }) => write(target.value)}
    />
  );
}

/** An amount in US dollars. */
export function AmountValue({ path, label, hint }: FieldProps) {
  const { value, error, set } = useField(path);
  return (
    <TextField
      label={label}
      hint={hint}
      error={error}
      inputMode="decimal"
      placeholder="–"
      value={value}
      onChange={({ target }) => set(target.value === "" ? undefined : target.value.trim())}
    />
  );
}

/** One of several words. */
export function ChoiceValue({
  path,
  label,
  hint,
  choices,
}: FieldProps & { readonly choices: readonly string[] }) {
  const { value, error, set } = useField(path);
  const text = useConfigurationText();
  // A value that is not known stays visible, with its problem.
  const known = choices.includes(value) ? choices : [value, ...choices];
  return (
    <SelectField
      label={label}
      hint={hint}
      error={error}
      value={value}
      choices={known.map((each) => ({ value: each, label: each || text.chooseKind }))}
      onChoose={set}
    />
  );
}

/** `true`, or no value. */
export function FlagValue({ path, label }: FieldProps) {
  const { value, set } = useField(path);
  return (
    <CheckField
      label={label}
      checked={value === "true"}
      onChange={({ target }) => set(target.checked ? true : undefined)}
    />
  );
}

/** A list of names, separated by commas. */
export function NamesValue({ path, label, hint }: FieldProps) {
  const { document } = useEditor();
  const { error, set } = useField(path);
  const size = document.sizeAt(path) ?? 0;
  const names = Array.from({ length: size }, (_, index) => document.textAt([...path, index]));
  const write = (typed: string): void => {
    const next = typed.split(",").map((name) => name.trimStart());
    set(next.length === 1 && next[0] === "" ? undefined : next);
  };
  return (
    <TextField
      label={label}
      hint={hint}
      error={error}
      value={names.join(", ")}
      spellCheck={false}
      onChange={({ target }) => write(target.value)}
    />
  );
}

/** A part of a form with a title. */
export function FormPart({
  title,
  hint,
  actions,
  children,
}: {
  title: string;
  hint?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}) {
  return (
    <fieldset className="min-w-0">
      <legend className="mb-2 w-full text-sm font-semibold">{title}</legend>
      {hint !== undefined && <p className="-mt-1 mb-3 text-xs text-muted">{hint}</p>}
      <div className="flex flex-col gap-4">
        {children}
        {actions !== undefined && <div className="flex flex-wrap gap-2">{actions}</div>}
      </div>
    </fieldset>
  );
}

/** The problems of a list or map as a whole; those of its values are at their fields. */
export function PartError({ path }: { path: Path }) {
  const { check } = useEditor();
  const own = check.problems.filter((problem) => problem.path === pathText(path));
  if (own.length === 0) return null;
  return (
    <p role="alert" className="text-xs text-bad">
      {own.map(({ message }) => message).join("; ")}
    </p>
  );
}

/** One of several equal parts, such as a route, with a button that removes it. */
export function Item({
  title,
  remove,
  onRemove,
  children,
}: {
  title: string;
  /** The name of the button. */
  remove: string;
  /** Without it, there is no button. */
  onRemove?: (() => void) | undefined;
  children: ReactNode;
}) {
  const text = useConfigurationText();
  return (
    <fieldset className="min-w-0 rounded-xl border border-line p-4">
      <legend className="px-1 text-[0.8125rem] font-medium">{title}</legend>
      <div className="flex flex-col gap-4">
        {children}
        {onRemove !== undefined && (
          <Button tone="quiet" aria-label={remove} className="self-end" onClick={onRemove}>
            {text.secretDelete}
          </Button>
        )}
      </div>
    </fieldset>
  );
}

/** The three limits of a key, an account, a model or a credential. */
export function LimitValues({ path }: { path: Path }) {
  const text = useConfigurationText();
  return (
    <div className="grid grid-cols-1 gap-3 sm:grid-cols-3">
      {(["rpm", "tpm", "concurrency"] as const).map((kind) => (
        <NumberValue key={kind} path={[...path, kind]} label={text[kind]} placeholder="–" />
      ))}
    </div>
  );
}

/** The weight and priority of a route or credential. */
export function ShareValues({ path }: { path: Path }) {
  const text = useConfigurationText();
  return (
    <div className="grid grid-cols-2 gap-3">
      <NumberValue path={[...path, "priority"]} label={text.priority} placeholder="0" />
      <NumberValue path={[...path, "weight"]} label={text.weight} placeholder="1" />
    </div>
  );
}
