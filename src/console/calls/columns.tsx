/** How a call appears in a list: the columns of the log, and the badge of its outcome. */
import { Link } from "@tanstack/react-router";
import { CallEnding, type CallRecord } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { type Texts, useText } from "../common/language.tsx";
import { durationText, msOf, timeText } from "../common/time.ts";
import { Id } from "../ui/code.tsx";
import { Amount, Badge, Time, type Tone } from "../ui/show.tsx";
import { type Column, RowButton } from "../ui/table.tsx";

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

/** The HTTP status, with the error's code where there is one. */
export function EndingBadge({ call }: { call: CallRecord }) {
  const { calls } = useText();
  const { ending, status, errorCode } = call;
  return (
    <Badge tone={tones[ending] ?? "neutral"}>
      <span className="sr-only">{calls.endings[ending]}: </span>
      <span title={calls.endings[ending]}>
        {status || "—"}
        {errorCode !== "" && ` ${errorCode}`}
      </span>
    </Badge>
  );
}
