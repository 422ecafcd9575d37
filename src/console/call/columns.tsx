/** The columns of the call log. */
import type { CallRecord } from "../../../gen/uas/billing/v1/billing_pb.ts";
import type { Texts } from "../language.tsx";
import { durationText, msOf, timeText } from "../time.ts";
import { Id } from "../ui/code.tsx";
import { Amount, Time } from "../ui/show.tsx";
import { type Column, RowButton } from "../ui/table.tsx";
import { EndingBadge } from "./ending.tsx";

/** The columns. */
export function callColumns({
  texts: { calls: text, common },
  keyNames,
  onOpen,
  isForAll,
}: {
  texts: Texts;
  keyNames: ReadonlyMap<string, string>;
  onOpen: (call: CallRecord) => void;
  /** Whether calls of several accounts are shown. */
  isForAll: boolean;
}): Column<CallRecord>[] {
  const account: Column<CallRecord> = {
    id: "account",
    title: common.account,
    from: "md",
    cell: ({ accountId }) => <Id value={accountId} />,
  };
  return [
    {
      id: "time",
      title: common.time,
      cell: (call) => (
        <RowButton onOpen={() => onOpen(call)}>
          <span className="sr-only">
            {text.openCall(call.startTime ? timeText(msOf(call.startTime)) : "")}
          </span>
          <span aria-hidden="true">
            <Time time={call.startTime} />
          </span>
        </RowButton>
      ),
    },
    { id: "status", title: common.status, cell: (call) => <EndingBadge call={call} /> },
    ...(isForAll ? [account] : []),
    {
      id: "model",
      title: common.model,
      cell: ({ model }) => (
        <span className="block max-w-48 truncate font-mono text-xs" title={model}>
          {model || "—"}
        </span>
      ),
    },
    {
      id: "key",
      title: common.key,
      from: "xl",
      cell: ({ keyId }) => (
        <span className="block max-w-32 truncate">{keyNames.get(keyId) ?? "—"}</span>
      ),
    },
    {
      id: "tokens",
      title: <span title={text.tokensTitle}>{text.tokens}</span>,
      isNumber: true,
      from: "md",
      cell: ({ usage }) => <Tokens usage={usage} text={text} />,
    },
    { id: "cost", title: common.cost, isNumber: true, cell: ({ cost }) => <Amount money={cost} /> },
    {
      id: "duration",
      title: text.duration,
      isNumber: true,
      from: "lg",
      cell: ({ durationMs }) => (
        <span className="whitespace-nowrap">{durationText(durationMs)}</span>
      ),
    },
    {
      id: "first",
      title: text.firstByte,
      isNumber: true,
      from: "xl",
      cell: ({ firstByteMs }) => (
        <span className="whitespace-nowrap">
          {firstByteMs > 0 ? durationText(firstByteMs) : "—"}
        </span>
      ),
    },
  ];
}

function Tokens({ usage, text }: { usage: CallRecord["usage"]; text: Texts["calls"] }) {
  if (usage === undefined || (usage.inputTokens === 0 && usage.outputTokens === 0)) {
    return <span className="text-muted">—</span>;
  }
  const cached = usage.cachedInputTokens;
  return (
    <span
      className="whitespace-nowrap"
      title={cached > 0 ? text.cachedOf(cached.toLocaleString()) : undefined}
    >
      {usage.inputTokens.toLocaleString()} → {usage.outputTokens.toLocaleString()}
    </span>
  );
}
