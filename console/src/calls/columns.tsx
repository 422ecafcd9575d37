/** The columns of the call log, and the badge of a call's outcome. */
import { CallEnding, type CallRecord } from "../../../gen/uas/billing/v1/call_pb.ts";
import { accountColumn } from "../accounts/account.tsx";
import { type Texts, useText } from "../common/language.tsx";
import { durationText, msOf, timeText } from "../common/time.ts";
import { Id } from "../ui/code.tsx";
import { Amount, Badge, type Tone, Truncated } from "../ui/show.tsx";
import { type Column, RowTime } from "../ui/table.tsx";
import { errorWord, millis } from "../common/contract.ts";

/** The columns of a call log. */
export function callColumns({
  texts: { calls: text, common },
  keyNames,
  onOpen,
  accountNames,
}: {
  texts: Texts;
  keyNames: ReadonlyMap<string, string>;
  onOpen: (call: CallRecord) => void;
  /** The names of accounts by their id, if calls of several accounts are shown. */
  accountNames?: ReadonlyMap<string, string>;
}): Column<CallRecord>[] {
  return [
    {
      id: "time",
      title: common.time,
      cell: (call) => (
        <RowTime
          time={call.startTime}
          label={text.openCall(call.startTime ? timeText(msOf(call.startTime)) : "")}
          onOpen={() => onOpen(call)}
        />
      ),
    },
    { id: "status", title: common.status, cell: (call) => <EndingBadge call={call} /> },
    ...(accountNames === undefined
      ? []
      : [accountColumn({ title: common.account, from: "md", names: accountNames })]),
    {
      id: "model",
      title: common.model,
      cell: ({ model }) => <Truncated text={model} className="max-w-48 font-mono text-xs" />,
    },
    // In a list of all accounts, the key matters less than the other columns.
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
      cell: ({ duration }) => <Duration ms={millis(duration)} />,
    },
    {
      id: "first",
      title: text.firstByte,
      isNumber: true,
      from: "xl",
      cell: ({ firstContentDuration: first }) => (first ? <Duration ms={millis(first)} /> : "—"),
    },
  ];
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

function Duration({ ms }: { ms: number }) {
  return <span className="whitespace-nowrap">{durationText(ms)}</span>;
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

const tones: Readonly<Record<CallEnding, Tone>> = {
  [CallEnding.UNSPECIFIED]: "neutral",
  [CallEnding.COMPLETED]: "good",
  [CallEnding.REFUSED]: "warn",
  [CallEnding.UPSTREAM_REFUSED]: "warn",
  [CallEnding.UPSTREAM_FAILED]: "bad",
  [CallEnding.CLIENT_GONE]: "neutral",
  [CallEnding.GATEWAY_STOPPED]: "bad",
  [CallEnding.GATEWAY_FAILED]: "bad",
  [CallEnding.OUT_OF_BALANCE]: "warn",
  [CallEnding.GATEWAY_LOST]: "bad",
  [CallEnding.CANCELLED]: "neutral",
  [CallEnding.KEY_DISABLED]: "warn",
  [CallEnding.KEY_DELETED]: "warn",
  [CallEnding.KEY_EXPIRED]: "warn",
};

/** Whether a call failed, as the gateway's statistics count it. */
export function didFail({ ending }: CallRecord): boolean {
  return (
    ending !== CallEnding.COMPLETED &&
    ending !== CallEnding.CLIENT_GONE &&
    ending !== CallEnding.CANCELLED
  );
}

/** The HTTP status, with the error's code if there is one. */
export function EndingBadge({ call }: { call: CallRecord }) {
  const { calls } = useText();
  const { ending, status } = call;
  const word = errorWord(call.errorCode);
  return (
    <Badge tone={tones[ending] ?? "neutral"}>
      <span className="sr-only">{calls.endings[ending]}: </span>
      <span title={calls.endings[ending]}>
        {status || "—"}
        {word !== "" && ` ${word}`}
      </span>
    </Badge>
  );
}
