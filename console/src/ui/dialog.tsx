/** Dialogs in the middle of the page, and sheets at its side. */
import { Dialog as Base } from "@base-ui/react/dialog";
import { clsx } from "clsx";
import { X } from "lucide-react";
import type { ReactNode, RefObject } from "react";
import { useText } from "../common/language.tsx";
import { Button, buttonClass } from "./button.tsx";
import { ErrorNote } from "./show.tsx";

export interface DialogProps {
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly title: ReactNode;
  readonly description?: ReactNode;
  readonly children?: ReactNode;
  /** The buttons at its end. */
  readonly footer?: ReactNode;
  /**
   * Whether it stays open after a click outside or Escape, for secrets that are shown once. By
   * default they close it.
   */
  readonly isSticky?: boolean;
  /** The element with the initial focus. By default the first that can have it. */
  readonly initialFocus?: RefObject<HTMLElement | null>;
  /** Narrow by default. */
  readonly width?: "narrow" | "wide";
}

const backdropClass = "fixed inset-0 z-40 bg-black/40 fade dark:bg-black/60";

/** A dialog. Its content exists only while it is open. */
export function Dialog(props: DialogProps) {
  const { isOpen, onClose, title, description, children, footer, isSticky = false } = props;
  const { initialFocus, width = "narrow" } = props;
  return (
    <Base.Root
      open={isOpen}
      disablePointerDismissal={isSticky}
      onOpenChange={(_open, { reason }) => {
        if (isSticky && reason === "escape-key") return;
        onClose();
      }}
    >
      <Base.Portal>
        <Base.Backdrop className={backdropClass} />
        <Base.Popup
          {...(initialFocus && { initialFocus })}
          className={clsx(
            "rise fixed top-[max(1rem,8vh)] left-1/2 z-50 flex max-h-[84vh] w-[calc(100vw-2rem)] -translate-x-1/2 flex-col",
            "rounded-2xl bg-surface shadow-float outline-none",
            width === "narrow" ? "max-w-md" : "max-w-2xl",
          )}
        >
          <div className="flex items-start justify-between gap-4 px-6 pt-5">
            <div className="min-w-0">
              <Base.Title className="text-base font-semibold">{title}</Base.Title>
              {description !== undefined && (
                <Base.Description render={<div />} className="mt-1 text-muted">
                  {description}
                </Base.Description>
              )}
            </div>
            {!isSticky && <CloseButton />}
          </div>
          <div className="min-h-0 overflow-y-auto px-6 py-5">{children}</div>
          {footer !== undefined && (
            <div className="flex flex-wrap justify-end gap-2 border-t border-line px-6 py-4">
              {footer}
            </div>
          )}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}

function CloseButton() {
  const { common } = useText();
  return (
    <Base.Close
      aria-label={common.close}
      className={clsx(buttonClass("quiet", "icon"), "-mt-1 -mr-2")}
    >
      <X aria-hidden="true" />
    </Base.Close>
  );
}

/** A sheet at the side: details of a row, next to the list. */
export function Sheet({
  isOpen,
  onClose,
  title,
  actions,
  children,
}: {
  isOpen: boolean;
  onClose: () => void;
  title: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}) {
  return (
    <Base.Root open={isOpen} onOpenChange={(open) => !open && onClose()}>
      <Base.Portal>
        <Base.Backdrop className={backdropClass} />
        <Base.Popup className="slide fixed inset-y-0 right-0 z-50 flex w-full max-w-xl flex-col bg-surface shadow-float outline-none">
          <div className="flex items-center justify-between gap-3 border-b border-line px-5 py-3">
            <Base.Title className="min-w-0 truncate text-base font-semibold">{title}</Base.Title>
            <div className="flex items-center gap-1">
              {actions}
              <span className="pt-1 pr-2">
                <CloseButton />
              </span>
            </div>
          </div>
          <div className="min-h-0 flex-1 overflow-y-auto p-5">{children}</div>
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}

/** Asks for confirmation before an action that cannot be undone. */
export function Confirm({
  isOpen,
  onClose,
  onConfirm,
  title,
  children,
  confirm,
  isBusy,
  error,
}: {
  isOpen: boolean;
  onClose: () => void;
  onConfirm: () => void;
  title: ReactNode;
  children: ReactNode;
  /** The button's text: the action, not "OK". */
  confirm: string;
  isBusy: boolean;
  /** Why the action failed; shown below the text. */
  error: unknown;
}) {
  const { common } = useText();
  return (
    <Dialog
      isOpen={isOpen}
      onClose={onClose}
      title={title}
      footer={
        <>
          <Button onClick={onClose}>{common.cancel}</Button>
          <Button tone="danger" isBusy={isBusy} onClick={onConfirm}>
            {confirm}
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-3 text-muted">
        {children}
        <ErrorNote error={error} />
      </div>
    </Dialog>
  );
}
