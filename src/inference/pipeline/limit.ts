/** Holds a call to the limits of its key, its account and its model (R-LIM-1), before money is held. */
import type { Limiter } from "../limits/limiter.ts";
import { rateLimited, subjectsOf, ticketHeaders } from "../limits/rate-limits.ts";
import type { Chunk } from "./adapter.ts";
import type { Call } from "./call.ts";
import type { Quoted } from "./quote.ts";

/**
 * Admits a call within its limits. Its tokens are reserved at their upper bound until {@link endLimits}.
 *
 * @returns `undefined` where the call has no limits: nothing is to be waited for
 * @throws GatewayError RATE_LIMIT_EXCEEDED; SERVICE_UNAVAILABLE where the limits cannot be checked
 */
export function limit<Out extends Chunk>(quoted: Quoted<Out>): Promise<void> | undefined {
  const { context, model, deps } = quoted;
  const subjects = subjectsOf(context.caller, model.key, deps.limitDefaults);
  return subjects === undefined ? undefined : admit(quoted, subjects);
}

async function admit<Out extends Chunk>(
  { call, tokens, planFor, deps }: Quoted<Out>,
  subjects: NonNullable<ReturnType<typeof subjectsOf>>,
): Promise<void> {
  const isTokenLimited = subjects.some(({ limits }) => limits.tpm !== undefined);
  const most = isTokenLimited ? tokens.bound + planFor(0).maxTokens : 0;
  const verdict = await deps.limiter.admit({ subjects, tokens: most });
  if (!verdict.isAdmitted) {
    deps.metrics.limitRefusals.inc({ limit: `${verdict.subject.kind}_${verdict.reason}` });
    throw rateLimited(verdict, most);
  }
  call.ticket = verdict;
  call.limitHeaders = ticketHeaders(verdict);
}

/** Ends a call towards its limits: gives back the tokens that it has not used. Harmless for a call without limits. */
export function endLimits({ ticket, usage }: Call, limiter: Pick<Limiter, "end">): void {
  if (ticket === undefined) return;
  limiter.end(ticket, usage === undefined ? 0 : usage.inputTokens + usage.outputTokens);
}
