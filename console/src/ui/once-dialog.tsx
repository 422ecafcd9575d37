/**
 * Secrets that are shown once: new keys, redeem codes, signing secrets, sign-in links. They exist
 * in the dialog only, until it closes.
 */
import { Download } from "lucide-react";
import { type ReactNode, type RefObject, useEffect, useRef, useState } from "react";
import { useText } from "../common/language.tsx";
import { Button } from "./button.tsx";
import { copyText, saveFile } from "./copy.tsx";
import { Dialog, type DialogProps } from "./dialog.tsx";
import { AreaField, TextField } from "./field.tsx";

export interface OnceDialogProps extends Pick<DialogProps, "onClose" | "title" | "width"> {
  readonly description?: ReactNode;
  /** The text to copy. By default `children` show the secret. */
  readonly secret?: string;
  /** The name of its field. */
  readonly label?: string;
  /** The text of the copy button. "Copy" by default. */
  readonly copy?: string;
  /** A file with the text. None by default. */
  readonly file?: { readonly label: string; readonly name: string; readonly content: string };
  /** The warning before it closes without a copy. By default it closes at once. */
  readonly warning?: string;
  /** Content below. */
  readonly children?: ReactNode;
}

/** Shows a secret. A click outside and Escape leave the dialog open. */
export function OnceDialog(props: OnceDialogProps) {
  const { secret, warning, onClose, title, description, width = "narrow", children } = props;
  const { common } = useText();
  const [isSaved, setSaved] = useState(false);
  const [isLeaving, setLeaving] = useState(false);
  const field = useRef<HTMLInputElement & HTMLTextAreaElement>(null);
  const isWarned = warning !== undefined && !isSaved;
  useUnloadWarning(isWarned);
  return (
    <Dialog
      isOpen
      isSticky
      width={width}
      initialFocus={field}
      title={title}
      description={description}
      onClose={onClose}
      footer={
        <>
          {isWarned && isLeaving && (
            <p role="alert" className="mr-auto self-center text-[0.8125rem] text-bad">
              {warning}
            </p>
          )}
          <Button
            tone={isWarned ? "secondary" : "primary"}
            onClick={() => (isWarned && !isLeaving ? setLeaving(true) : onClose())}
          >
            {isWarned && isLeaving ? common.closeAnyway : common.done}
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-5">
        {secret !== undefined && (
          <Secret {...props} secret={secret} field={field} onSaved={() => setSaved(true)} />
        )}
        {children}
      </div>
    </Dialog>
  );
}

/**
 * The secret as selected text, because browsers have no clipboard over plain HTTP, with buttons to
 * copy and download it.
 */
function Secret({
  secret,
  label = "",
  copy: copyLabel,
  file,
  field,
  onSaved,
}: Omit<OnceDialogProps, "secret"> & {
  secret: string;
  field: RefObject<(HTMLInputElement & HTMLTextAreaElement) | null>;
  onSaved: () => void;
}) {
  const { common } = useText();
  const [outcome, setOutcome] = useState<"copied" | "failed">();
  const copy = async (): Promise<void> => {
    const isDone = await copyText(secret);
    setOutcome(isDone ? "copied" : "failed");
    if (isDone) onSaved();
    else field.current?.select();
  };
  return (
    <div className="flex flex-col gap-3">
      <SecretField secret={secret} label={label} field={field} onSaved={onSaved} />
      <div className="flex flex-wrap gap-2">
        <Button tone="primary" onClick={() => void copy()}>
          {outcome === "copied" ? common.copied : (copyLabel ?? common.copy)}
        </Button>
        {file !== undefined && (
          <Button
            onClick={() => {
              saveFile(file.name, new Blob([file.content], { type: "text/plain" }));
              onSaved();
            }}
          >
            <Download aria-hidden="true" />
            {file.label}
          </Button>
        )}
      </div>
      <p role="status" className={outcome === "failed" ? "text-[0.8125rem] text-warn" : "sr-only"}>
        {outcome === "failed" ? common.notCopied : outcome === "copied" ? common.copied : ""}
      </p>
    </div>
  );
}

function SecretField({
  secret,
  label,
  field,
  onSaved,
}: {
  secret: string;
  label: string;
  field: RefObject<(HTMLInputElement & HTMLTextAreaElement) | null>;
  onSaved: () => void;
}) {
  const lines = secret.split("\n").length;
  const shared = {
    ref: field,
    readOnly: true,
    label,
    isLabelHidden: true,
    value: secret,
    spellCheck: false,
    onCopy: onSaved,
  };
  if (lines === 1) {
    return (
      <TextField
        {...shared}
        onFocus={(event) => event.target.select()}
        className="font-mono text-[0.8125rem]"
      />
    );
  }
  return (
    <AreaField
      {...shared}
      rows={Math.min(10, lines)}
      onFocus={(event) => event.target.select()}
      className="resize-none font-mono text-xs leading-relaxed"
    />
  );
}

/** Warns before the browser leaves the page. */
function useUnloadWarning(isOn: boolean): void {
  useEffect(() => {
    if (!isOn) return undefined;
    const warn = (event: BeforeUnloadEvent): void => event.preventDefault();
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [isOn]);
}
