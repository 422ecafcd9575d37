/** A dialog that is a form: its fields, what went wrong, and at its end the button that sends it. */
import { type FormEvent, useId } from "react";
import { useText } from "../common/language.tsx";
import { Button } from "./button.tsx";
import { Dialog, type DialogProps } from "./dialog.tsx";
import { ErrorNote } from "./show.tsx";

export interface FormDialogProps
  extends Pick<DialogProps, "onClose" | "title" | "description" | "children"> {
  /** Called where the browser found the fields filled in. */
  readonly onSubmit: () => void;
  /** What the button says: the deed, not "OK". */
  readonly submit: string;
  /** How it looks; `danger` where the deed takes something away. Default: primary. */
  readonly tone?: "primary" | "danger";
  /** Whether the deed is under way. */
  readonly isBusy: boolean;
  /** Default: it can be sent. */
  readonly canSubmit?: boolean;
  /** Why the deed failed; shown below the fields. */
  readonly error: unknown;
}

/** The dialog. It is open for as long as it exists. */
export function FormDialog(props: FormDialogProps) {
  const { onClose, title, description, children, onSubmit, submit, error } = props;
  const { tone = "primary", isBusy, canSubmit = true } = props;
  const { common } = useText();
  const formId = useId();
  const send = (event: FormEvent): void => {
    event.preventDefault();
    onSubmit();
  };
  return (
    <Dialog
      isOpen
      onClose={onClose}
      title={title}
      description={description}
      footer={
        <>
          <Button onClick={onClose}>{common.cancel}</Button>
          <Button type="submit" form={formId} tone={tone} isBusy={isBusy} disabled={!canSubmit}>
            {submit}
          </Button>
        </>
      }
    >
      <form id={formId} onSubmit={send} className="flex flex-col gap-5">
        {children}
        <ErrorNote error={error} />
      </form>
    </Dialog>
  );
}
