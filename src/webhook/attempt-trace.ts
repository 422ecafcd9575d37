/** The trace of one attempt to deliver a webhook. */
import { own, standard } from "../observe/traces/names.ts";
import type { Traces } from "../observe/traces/traces.ts";
import type { Finished } from "./delivery.ts";

/** Records an attempt about a task whose submit was traced. @param outcome in lower case */
export function traceAttempt(
  traces: Traces | undefined,
  { accountId, deliveryId, traceparent, origin, result, verdict }: Finished,
  outcome: string,
): void {
  if (traces === undefined || traceparent === null) return;
  const { hostname } = new URL(origin);
  const span = traces.start("POST webhook", {
    role: "client",
    startTime: result.startTime,
    causedBy: traceparent,
    attributes: {
      [standard.httpMethod]: "POST",
      [standard.httpStatus]: result.status ?? undefined,
      [standard.serverAddress]: hostname,
      [own.account]: accountId,
      [own.delivery]: deliveryId,
      [own.outcome]: outcome,
    },
  });
  span?.end(verdict.state === "delivered" ? undefined : outcome);
}
