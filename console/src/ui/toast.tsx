/** Toasts: the result of an action, shown in the corner for a few seconds. */
import { Toast as Base } from "@base-ui/react/toast";
import { X } from "lucide-react";
import type { ReactNode } from "react";
import { useText } from "../common/language.tsx";
import { shownError } from "../common/rpc.ts";
import { buttonClass } from "./button.tsx";

/** Provides {@link useToast} to everything below it. */
export function ToastProvider({ children }: { children: ReactNode }) {
  return (
    <Base.Provider timeout={6_000} limit={3}>
      {children}
      <Base.Portal>
        <Base.Viewport className="fixed right-4 bottom-4 z-60 flex w-[calc(100vw-2rem)] flex-col gap-2 sm:w-96">
          <Toasts />
        </Base.Viewport>
      </Base.Portal>
    </Base.Provider>
  );
}

function Toasts() {
  const { toasts } = Base.useToastManager();
  const { common } = useText();
  return toasts.map((toast) => (
    <Base.Root
      key={toast.id}
      toast={toast}
      className="rise rounded-xl bg-surface shadow-float data-limited:hidden"
    >
      <Base.Content className="flex items-center gap-3 py-2.5 pr-2 pl-4">
        <div className="min-w-0 flex-1">
          <Base.Title render={<p />} className="text-[0.8125rem] font-medium" />
          <Base.Description className="text-xs text-muted" />
        </div>
        <Base.Action className={buttonClass("secondary", "small")} />
        <Base.Close aria-label={common.close} className={buttonClass("quiet", "icon")}>
          <X aria-hidden="true" />
        </Base.Close>
      </Base.Content>
    </Base.Root>
  ));
}

/** The content of a toast. */
export interface News {
  readonly title: string;
  readonly description?: string;
  /** Undoes it; with it, the toast has a button. */
  readonly undo?: () => void;
}

/** Shows a toast. */
export function useToast(): (news: News) => void {
  const manager = Base.useToastManager();
  const { common } = useText();
  return ({ title, description, undo }) => {
    const id = manager.add({
      title,
      ...(description !== undefined && { description }),
      ...(undo && {
        actionProps: {
          children: common.undo,
          onClick: () => {
            undo();
            manager.close(id);
          },
        },
      }),
    });
  };
}

/** Shows an error as a toast, for buttons without space for an error next to them. */
export function useErrorToast(): (error: unknown) => void {
  const toast = useToast();
  return (error) => toast({ title: shownError(error).text });
}
