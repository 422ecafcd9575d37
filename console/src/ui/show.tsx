/** Values as every page shows them: times, amounts, states, errors. */
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { clsx } from "clsx";
import { TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";
import type { Money } from "../../../gen/uas/type/v1/money_pb.ts";
import { useNow, useZone } from "../common/clock.tsx";
import { useLanguage, useText } from "../common/language.tsx";
import { exactUsd, longUsd, nanosOf, signedUsd, usd } from "../common/money.ts";
import { shownError } from "../common/rpc.ts";
import { exactTimeText, msOf, relativeText, timeText } from "../common/time.ts";
import { Button } from "./button.tsx";

/** A time; its tooltip has the exact time with the offset. */
export function Time({
  time,
  isRelative = false,
  none = "—",
}: {
  time: Timestamp | undefined;
  /** Whether it is shown as `2 minutes ago`. */
  isRelative?: boolean;
  none?: ReactNode;
}) {
  const { language } = useLanguage();
  const now = useNow();
  const zone = useZone();
  if (time === undefined) return <span className="text-muted">{none}</span>;
  const ms = msOf(time);
  const relative = relativeText(ms, { now, language });
  return (
    <time
      dateTime={new Date(ms).toISOString()}
      title={isRelative ? exactTimeText(ms, zone) : `${exactTimeText(ms, zone)} · ${relative}`}
      className="whitespace-nowrap"
    >
      {isRelative ? relative : timeText(ms, zone)}
    </time>
  );
}

/** An amount; its tooltip has all decimals. */
export function Amount({
  money,
  isSigned = false,
  isExact = false,
}: {
  money: Money | bigint | undefined;
  isSigned?: boolean;
  /** Whether all its decimals are shown. */
  isExact?: boolean;
}) {
  if (money === undefined) return <span className="text-muted">—</span>;
  const nanos = typeof money === "bigint" ? money : nanosOf(money);
  return (
    <span title={exactUsd(nanos)} className="whitespace-nowrap tabular-nums">
      {isExact ? longUsd(nanos) : isSigned ? signedUsd(nanos) : usd(nanos)}
    </span>
  );
}

/**
 * A text on one line, truncated if it is too long, in full in its tooltip; a dash if it is empty.
 */
export function Truncated({
  text,
  title = text,
  className,
}: {
  text: string;
  /** The tooltip. The text by default. */
  title?: string;
  /** Its width. */
  className: string;
}) {
  return (
    <span title={title} className={clsx("block truncate", text === "" && "text-muted", className)}>
      {text || "—"}
    </span>
  );
}

/** An error with its request id, and a button to retry. */
export function ErrorNote({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const { common } = useText();
  if (error === undefined || error === null) return null;
  const { text, requestId } = shownError(error);
  return (
    <div
      role="alert"
      className="flex flex-wrap items-start gap-3 rounded-xl bg-bad-soft px-4 py-3 text-bad"
    >
      <TriangleAlert aria-hidden="true" className="mt-0.5 size-4 shrink-0" />
      <div className="min-w-0 flex-1">
        <p className="break-words">{text}</p>
        {requestId !== "" && (
          <p className="mt-0.5 font-mono text-xs">
            {common.requestId} {requestId}
          </p>
        )}
      </div>
      {onRetry !== undefined && <Button onClick={onRetry}>{common.retry}</Button>}
    </div>
  );
}

/** The meaning of a state. */
export type Tone = "good" | "warn" | "bad" | "info" | "neutral";

const tones: Readonly<Record<Tone, string>> = {
  good: "bg-good-soft text-good",
  warn: "bg-warn-soft text-warn",
  bad: "bg-bad-soft text-bad",
  info: "bg-accent-soft text-accent",
  neutral: "bg-sunken text-muted",
};

/** A state in one or two words, with a coloured dot. The words alone carry the meaning. */
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

/**
 * The priority of a route or credential among its alternatives, and its share of the calls within
 * that priority.
 */
export function Share({
  target: { weight, priority },
  all,
}: {
  target: Shared;
  all: readonly Shared[];
}) {
  const { prices: text } = useText();
  const total = all
    .filter((each) => each.priority === priority)
    .reduce((sum, each) => sum + each.weight, 0);
  // The only one in its priority takes all calls of that priority, whatever its weight.
  if (weight === total) return text.priority(priority);
  const share = weight === 0 ? text.spare : text.weight(weight, Math.round((100 * weight) / total));
  return text.both(text.priority(priority), share);
}

/** The members that determine a share of calls. */
interface Shared {
  readonly weight: number;
  readonly priority: number;
}
