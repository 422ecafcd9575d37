/** Forms: on a page or in a dialog, and the steps after a submit. */
import { useQueryClient } from "@tanstack/react-query";
import { type ComponentProps, useId, useState } from "react";
import { useText } from "../common/language.tsx";
import { Button } from "./button.tsx";
import { Dialog, type DialogProps } from "./dialog.tsx";
import { ErrorNote } from "./show.tsx";
import { useToast } from "./toast.tsx";

/** A form that calls `onSubmit` instead of loading a page. */
export function Form({
  onSubmit,
  ...form
}: Omit<ComponentProps<"form">, "onSubmit"> & {
  /** Called when the browser finds the fields valid. */
  onSubmit: () => void;
}) {
  return (
    <form
      {...form}
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit();
      }}
    />
  );
}

export interface FormDialogProps
  extends Pick<DialogProps, "onClose" | "title" | "description" | "children"> {
  /** Called when the browser finds the fields valid. */
  readonly onSubmit: () => void;
  /** The button's text: the action, not "OK". */
  readonly submit: string;
  /** The look of the button; `danger` if the action removes something. Primary by default. */
  readonly tone?: "primary" | "danger";
  /** Whether the action is running. Default false. */
  readonly isBusy?: boolean;
  /** Whether the form can be submitted. Default true. */
  readonly canSubmit?: boolean;
  /** The error of the action, shown below the fields. None by default. */
  readonly error?: unknown;
}

/** A dialog that is a form. It is open for as long as it exists. */
export function FormDialog(props: FormDialogProps) {
  const { onClose, title, description, children, onSubmit, submit, error } = props;
  const { tone = "primary", isBusy = false, canSubmit = true } = props;
  const { common } = useText();
  const formId = useId();
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
      <Form id={formId} onSubmit={onSubmit} className="flex flex-col gap-5">
        {children}
        <ErrorNote error={error} />
      </Form>
    </Dialog>
  );
}

/**
 * Finishes a change: closes the dialog, shows a toast, and fetches data that may have changed.
 *
 * @param onClose closes the dialog of the change. Absent if there is none
 */
export function useDone(
  onClose?: () => void,
): (title: string, description?: string) => Promise<void> {
  const queries = useQueryClient();
  const toast = useToast();
  return async (title, description) => {
    onClose?.();
    toast({ title, ...(description !== undefined && { description }) });
    await queries.invalidateQueries();
  };
}

/**
 * A running action that is no mutation, because its result must not stay in the cache of queries,
 * or is a stream.
 */
export interface Action<Args extends readonly unknown[]> {
  readonly isBusy: boolean;
  /** Why the last run failed. */
  readonly error: unknown;
  /** Runs it. A failure is kept in `error`. */
  readonly run: (...args: Args) => void;
}

/**
 * Tracks the runs of an action.
 *
 * @param onError called with each failure. By default it is only stored in `error`
 */
export function useAction<Args extends readonly unknown[]>(
  act: (...args: Args) => Promise<void>,
  onError?: (error: unknown) => void,
): Action<Args> {
  const [state, setState] = useState<{ isBusy: boolean; error: unknown }>({
    isBusy: false,
    error: undefined,
  });
  const run = async (...args: Args): Promise<void> => {
    setState({ isBusy: true, error: undefined });
    let error: unknown;
    try {
      await act(...args);
    } catch (failure) {
      error = failure;
      onError?.(failure);
    }
    setState({ isBusy: false, error });
  };
  return { ...state, run: (...args) => void run(...args) };
}
