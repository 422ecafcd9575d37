/** The columns of the call log. */
import { Link } from "@tanstack/react-router";
import type { CallRecord } from "../../../gen/uas/billing/v1/call_pb.ts";
import type { Texts } from "../language.tsx";
import { durationText, msOf, timeText } from "../time.ts";
import { Id } from "../ui/code.tsx";
import { Amount, Time } from "../ui/show.tsx";
import { type Column, RowButton } from "../ui/table.tsx";
import { EndingBadge } from "./ending.tsx";
import { millis } from "../duration.ts";

/** The columns. */
export function callColumns({
  texts: { calls: text, common },
  keyNames,
  onOpen,
  accountNames,
}: {
  texts: Texts;
  keyNames: ReadonlyMap<string, string>;
  onOpen: (call: CallRecord) => void;
  /** What accounts are called, by their id, where calls of several are shown. */
  accountNames?: ReadonlyMap<string, string>;
}): Column<CallRecord>[] {
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
    ...(accountNames === undefined ? [] : [accountColumn(common.account, accountNames)]),
    {
      id: "model",
      title: common.model,
      cell: ({ model }) => (
        <span className="block max-w-48 truncate font-mono text-xs" title={model}>
          {model || "—"}
        </span>
      ),
    },
    // Of all accounts, keys say little and take the room of what says more.
    ...(accountNames === undefined ? [keyColumn(common.key, keyNames)] : []),
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
      cell: ({ duration }) => (
        <span className="whitespace-nowrap">{durationText(millis(duration))}</span>
      ),
    },
    {
      id: "first",
      title: text.firstByte,
      isNumber: true,
      from: "xl",
      cell: ({ firstContentDuration: first }) => (
        <span className="whitespace-nowrap">{first ? durationText(millis(first)) : "—"}</span>
      ),
    },
  ];
}

function accountColumn(title: string, names: ReadonlyMap<string, string>): Column<CallRecord> {
  return {
    id: "account",
    title,
    from: "md",
    cell: ({ accountId }) => (
      <Link
        to="/accounts/$accountId"
        params={{ accountId }}
        title={accountId}
        className="block max-w-36 truncate underline-offset-4 hover:underline"
      >
        {names.get(accountId) ?? accountId.slice(-12)}
      </Link>
    ),
  };
}

function keyColumn(title: string, names: ReadonlyMap<string, string>): Column<CallRecord> {
  return {
    id: "key",
    title,
    from: "xl",
    cell: ({ keyId }) => (
      <span className="block max-w-32 truncate">
        {names.get(keyId) ?? (keyId === "" ? "—" : <Id value={keyId} />)}
      </span>
    ),
  };
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
