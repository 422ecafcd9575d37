/** Buttons, and links that look like them. */
import { clsx } from "clsx";
import type { ComponentProps } from "react";

/** The prominence of a button: at most one primary in a view. */
export type ButtonTone = "primary" | "secondary" | "quiet" | "danger";

export type ButtonSize = "small" | "medium" | "icon";

const base =
  "inline-flex shrink-0 items-center justify-center gap-1.5 rounded-lg font-medium whitespace-nowrap " +
  "transition-colors disabled:cursor-not-allowed disabled:opacity-50 [&_svg]:size-4 [&_svg]:shrink-0";

const tones: Readonly<Record<ButtonTone, string>> = {
  primary: "bg-solid text-on-solid hover:opacity-90",
  secondary: "border border-line-strong bg-surface text-ink hover:bg-hover",
  quiet: "text-muted hover:bg-hover hover:text-ink",
  danger: "bg-bad-soft text-bad hover:opacity-85",
};

const sizes: Readonly<Record<ButtonSize, string>> = {
  small: "h-8 px-3 text-[0.8125rem]",
  medium: "h-9 px-4 text-sm",
  icon: "size-9 sm:size-8",
};

/** The classes of a button, for links that look like one. */
export function buttonClass(tone: ButtonTone = "secondary", size: ButtonSize = "small"): string {
  return clsx(base, tones[tone], sizes[size]);
}

export interface ButtonProps extends ComponentProps<"button"> {
  /** Secondary by default. */
  readonly tone?: ButtonTone;
  /** Small by default. */
  readonly size?: ButtonSize;
  /** Whether its action is running: it shows that, and cannot be pressed again. */
  readonly isBusy?: boolean;
}

/** A button. It submits a form only with `type`. */
export function Button({
  tone = "secondary",
  size = "small",
  isBusy = false,
  className,
  disabled,
  children,
  ...rest
}: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      disabled={disabled === true || isBusy}
      aria-busy={isBusy || undefined}
      className={clsx(buttonClass(tone, size), className)}
    >
      {isBusy && <Spinner />}
      {children}
    </button>
  );
}

function Spinner() {
  return (
    <span
      aria-hidden="true"
      className="size-3.5 animate-spin rounded-full border-2 border-current border-r-transparent"
    />
  );
}
