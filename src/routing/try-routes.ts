/** Makes the attempts of one call, one after another, until a vendor answers. */
import { pause } from "../core/async.ts";
import type { CancelSignal } from "../core/cancel-signal.ts";
import type { GatewayError } from "../core/errors.ts";
import { unusableReply } from "./upstream-refusal.ts";
import type { AttemptPlan, Destination } from "./attempt-plan.ts";
import type { AttemptFailure } from "./breaker.ts";
import type { FailedAttempt, OpenReply } from "./attempt.ts";
import type { AttemptOptions, Upstream } from "./upstream.ts";
import { isContextRefusal } from "./upstream-refusal.ts";

/** A failed attempt, for the record. `error`: `undefined` where the vendor reported it in its answer. */
export type FailedFacts = Pick<FailedAttempt, "failure" | "isSent"> & {
  readonly error?: GatewayError | undefined;
};

/** How a call uses its attempts: may be the call itself, whose methods are called on it. */
export interface TryOptions<Result> extends AttemptOptions {
  /** Reads an answer up to its first content, and returns what the caller needs. A failure of the vendor goes to the next
   * attempt. */
  begin(open: OpenReply): Result | Promise<Result>;
  /** Whether the vendor reported a failure in an answer before its first content. Default: no. */
  hasFailed?(result: Result): boolean;
  /** Called with each failed attempt that another one may follow. Default: nothing. */
  onFailed?(destination: Destination, failed: FailedFacts): void;
  /** The plan of the next model, when the last plan has no further attempt. Default: none. */
  nextPlan?(): AttemptPlan | undefined;
  /** Ends the pauses between attempts. */
  readonly signal: CancelSignal;
}

/** An answer that has begun. With a `failure` it is used only if no other attempt follows. */
interface Begun<Result> {
  readonly result: Result;
  readonly open: OpenReply;
  readonly failure: AttemptFailure | undefined;
  readonly isSent: boolean;
  readonly error?: undefined;
  readonly retryAfterMs?: undefined;
}

/** Makes attempts until one answers. @throws GatewayError of the last attempt */
export async function tryRoutes<Result>(
  upstream: Upstream,
  firstPlan: AttemptPlan,
  options: TryOptions<Result>,
): Promise<Result> {
  let plan = firstPlan;
  let last: GatewayError | undefined;
  let spare: Begun<Result> | undefined;
  for (;;) {
    const next = plan.next();
    const destination = next instanceof Promise ? await next : next;
    if (destination === undefined) {
      const other = options.nextPlan?.();
      if (other !== undefined) {
        plan = other;
        continue;
      }
      if (spare !== undefined) return spare.result;
      throw last ?? upstream.unserved(plan.pausedMs);
    }
    spare?.open.close();
    spare = undefined;
    if (destination.delayMs > 0) await pause(destination.delayMs, options.signal);
    const attempted = await upstream.attempt(destination, plan, options);
    const begun = attempted.error === undefined ? await begin(attempted, plan, options) : attempted;
    const { failure } = begun;
    if (begun.error === undefined && failure === undefined) return begun.result;
    if (failure === undefined) throw begun.error;
    plan.failed(destination, { ...begun, failure });
    options.onFailed?.(destination, begun);
    if (begun.error === undefined) spare = begun;
    else last = begun.error;
  }
}

/** Reads an answer up to its first content. */
async function begin<Result>(
  open: OpenReply,
  plan: AttemptPlan,
  options: TryOptions<Result>,
): Promise<Begun<Result> | FailedAttempt> {
  const { refusal } = open;
  if (refusal !== undefined && isContextRefusal(refusal) && plan.hasLonger(open.destination)) {
    open.close();
    return { error: refusal.error, failure: "context", isSent: false };
  }
  try {
    if (refusal !== undefined) open.succeeded();
    const result = await options.begin(open);
    const hasFailed = options.hasFailed?.(result) === true;
    if (!hasFailed && refusal === undefined) open.succeeded();
    const { failure } = hasFailed ? open.failed(failedInStream()) : noFailure;
    return { result, open, failure, isSent: true };
  } catch (error) {
    const failed = open.failed(error);
    open.close();
    return failed;
  }
}

const noFailure = { failure: undefined };

function failedInStream(): GatewayError {
  return unusableReply("an error in the stream before its first content");
}
