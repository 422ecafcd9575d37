/** Small words of state. */
import { clsx } from "clsx";
import type { ReactNode } from "react";

/** What a state means to the reader. */
export type Tone = "good" | "warn" | "bad" | "info" | "neutral";

const tones: Readonly<Record<Tone, string>> = {
  good: "bg-good-soft text-good",
  warn: "bg-warn-soft text-warn",
  bad: "bg-bad-soft text-bad",
  info: "bg-accent-soft text-accent",
  neutral: "bg-sunken text-muted",
};

/** A state in one or two words, with a dot of its colour. The words carry the meaning; the colour helps. */
export function Badge({
  tone,
  children,
  isPlain = false,
}: {
  tone: Tone;
  children: ReactNode;
  isPlain?: boolean;
}) {
  return (
    <span
      className={clsx(
        "inline-flex items-center gap-1.5 rounded-full px-2 py-0.5 text-xs font-medium whitespace-nowrap",
        tones[tone],
      )}
    >
      {!isPlain && <span aria-hidden="true" className="size-1.5 rounded-full bg-current" />}
      {children}
    </span>
  );
}
