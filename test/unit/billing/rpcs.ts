/**
 * Calls the RPCs of billing as one caller, with plain objects, the contract's checks and the
 * service's own errors.
 */
import {
  create,
  type DescMessage,
  type DescService,
  type MessageInitShape,
} from "@bufbuild/protobuf";
import {
  type Client,
  createContextValues,
  type HandlerContext,
  type ServiceImpl,
} from "@connectrpc/connect";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { CallService } from "../../../gen/uas/billing/v1/call_service_pb.ts";
import type { CallFeed } from "../../../src/billing/calls/feed.ts";
import { createCallService } from "../../../src/billing/calls/service.ts";
import { type Caller, callerKey } from "../../../src/core/caller.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { serve } from "../../../src/core/contract-rules.ts";
import type { Queryable } from "../../../src/db/pool/queryable.ts";

type Handler = (request: unknown, context: HandlerContext) => Promise<unknown>;

/** All of billing's. */
export function rpcs(
  service: ServiceImpl<typeof BillingService>,
  caller: Caller,
): Client<typeof BillingService> {
  return rpcsOf(BillingService, service, caller);
}

/** Those of the call log that look back; nothing can be watched. */
export function callRpcs(pool: Queryable, caller: Caller): Client<typeof CallService> {
  // Only TailCalls, which is no unary RPC, would use it.
  const feed = {} as CallFeed;
  return rpcsOf(CallService, createCallService({ clock: systemClock, pool, feed }), caller);
}

/** All unary ones of a service, also those that come. */
export function rpcsOf<Service extends DescService>(
  description: Service,
  service: ServiceImpl<Service>,
  caller: Caller,
): Client<Service> {
  const context = { values: createContextValues().set(callerKey, caller) } as HandlerContext;
  const { implementation } = serve(description, service);
  const handlers = implementation as unknown as Readonly<Record<string, Handler>>;
  const calls = description.methods.map(({ localName, input }) => [
    localName,
    async (init: MessageInitShape<DescMessage>) =>
      handlers[localName]?.(create(input, init), context),
  ]);
  return Object.fromEntries(calls) as Client<Service>;
}
