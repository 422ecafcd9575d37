/** How a call ended, in a word and a colour. */
import { CallEnding, type CallRecord } from "../../../gen/uas/billing/v1/call_pb.ts";
import { useText } from "../language.tsx";
import { Badge, type Tone } from "../ui/badge.tsx";
import { errorWord } from "../error-word.ts";

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
