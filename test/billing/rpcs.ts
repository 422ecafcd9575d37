/** Calls the RPCs of billing as one caller, with plain objects and the service's own errors. */
import { create, type MessageInitShape, type DescMessage } from "@bufbuild/protobuf";
import {
  type Client,
  createContextValues,
  type HandlerContext,
  type ServiceImpl,
} from "@connectrpc/connect";
import { BillingService } from "../../gen/uas/billing/v1/billing_service_pb.ts";
import { type Caller, callerKey } from "../../src/caller.ts";

type Handler = (request: unknown, context: HandlerContext) => Promise<unknown>;

/** All of them, also those that come. */
export function rpcs(
  service: ServiceImpl<typeof BillingService>,
  caller: Caller,
): Client<typeof BillingService> {
  const context = { values: createContextValues().set(callerKey, caller) } as HandlerContext;
  const handlers = service as unknown as Readonly<Record<string, Handler>>;
  const calls = BillingService.methods.map(({ localName, input }) => [
    localName,
    async (init: MessageInitShape<DescMessage>) =>
      handlers[localName]?.(create(input, init), context),
  ]);
  return Object.fromEntries(calls) as Client<typeof BillingService>;
}
