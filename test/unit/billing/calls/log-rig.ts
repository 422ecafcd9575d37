/** The service of the call log as one caller. */
import { createClient } from "@connectrpc/connect";
import { CallService } from "../../../../gen/uas/billing/v1/call_service_pb.ts";
import { CallFeed } from "../../../../src/billing/calls/feed.ts";
import { createCallService } from "../../../../src/billing/calls/service.ts";
import { type Caller, callerKey, operator } from "../../../../src/core/caller.ts";
import { systemClock } from "../../../../src/core/clock.ts";
import { createDirectTransport } from "../../../../src/edge/rpc/direct-transport.ts";
import { serve } from "../../../../src/core/contract-rules.ts";
import { type Billing, openBilling } from "../harness.ts";

/** A database whose call log can be asked. */
export interface LogRig extends Billing {
  readonly callsOf: (caller?: Caller, quietMs?: number) => ReturnType<typeof clientOf>;
}

/** Opens it. Close it. */
export async function openLog(): Promise<LogRig> {
  const billing = await openBilling();
  const feed = new CallFeed({ pool: billing.pool, url: billing.url });
  return {
    ...billing,
    callsOf: (caller = operator, quietMs = 60_000) => clientOf({ billing, feed }, caller, quietMs),
    async close() {
      await feed.close();
      await billing.close();
    },
  };
}

function clientOf(
  { billing: { pool }, feed }: { readonly billing: Billing; readonly feed: CallFeed },
  caller: Caller,
  quietMs: number,
) {
  const service = createCallService({ clock: systemClock, pool, feed, quietMs });
  const transport = createDirectTransport(
    [serve(CallService, service)],
    [
      (next) => (request) => {
        request.contextValues.set(callerKey, caller);
        return next(request);
      },
    ],
  );
  return createClient(CallService, transport);
}
