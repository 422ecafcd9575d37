/** The states of deliveries, by the words of addresses. */
import { DeliveryState } from "../../../gen/uas/webhook/v1/webhook_pb.ts";
import type { deliveryStates } from "../search.ts";

/** What they are in the contract. */
export const states: Readonly<Record<(typeof deliveryStates)[number], DeliveryState>> = {
  pending: DeliveryState.PENDING,
  sending: DeliveryState.SENDING,
  delivered: DeliveryState.DELIVERED,
  failed: DeliveryState.FAILED,
  dropped: DeliveryState.DROPPED,
  parked: DeliveryState.PARKED,
};
