/** How far a delivery is, in a word and a colour. */
import { DeliveryState } from "../../../gen/uas/webhook/v1/webhook_pb.ts";
import { useText } from "../language.tsx";
import { Badge, type Tone } from "../ui/badge.tsx";

const tones: Readonly<Record<DeliveryState, Tone>> = {
  [DeliveryState.UNSPECIFIED]: "neutral",
  [DeliveryState.PENDING]: "info",
  [DeliveryState.SENDING]: "info",
  [DeliveryState.DELIVERED]: "good",
  [DeliveryState.FAILED]: "bad",
  [DeliveryState.DROPPED]: "neutral",
  [DeliveryState.PARKED]: "warn",
};

/** How far a delivery is. */
export function DeliveryBadge({ state }: { state: DeliveryState }) {
  const { webhooks: text } = useText();
  return <Badge tone={tones[state] ?? "neutral"}>{text.states[state]}</Badge>;
}
