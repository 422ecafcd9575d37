/**
 * A call with an `Idempotency-Key`. The first request with a key runs, and its reply is kept: a
 * repetition gets the same reply, and is charged nothing. Calls without a key have none of this.
 */
import { createHash } from "node:crypto";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { withTimeout } from "../../core/async.ts";
import { GatewayStopping } from "../../core/caller.ts";
import { type CancelSignal, CancelSource } from "../../core/cancel-signal.ts";
import { checkIdempotencyKey } from "../../core/idempotency-key.ts";
import { stateWaitMs } from "../../core/limits.ts";
import type { Sink } from "../../core/sink.ts";
import type { Claim } from "../idempotency/claims.ts";
import { ReplyRecorder, sendKept } from "../idempotency/kept-reply.ts";
import type { CallAdapter, Chunk, Repetition } from "./adapter.ts";
import type { Admitted, CallToAdmit } from "./admit.ts";
import type { Call } from "./call.ts";
import type { PipelineDeps } from "./context.ts";

/** The parts of a call that its idempotency key changes. */
export class IdempotentCall<Out extends Chunk> {
  /** The call, which a disconnect of its client does not end. */
  readonly begin: CallToAdmit;
  /** Records the reply. */
  readonly sink: ReplyRecorder<Out>;
  readonly #repetition: Repetition<Out>;
  readonly #client: Sink<Out>;
  readonly #deps: PipelineDeps;
  #claim: Claim | undefined;

  constructor(repetition: Repetition<Out>, client: Sink<Out>, begin: CallToAdmit) {
    this.#repetition = repetition;
    this.#client = client;
    this.#deps = begin.deps;
    this.sink = new ReplyRecorder(client, repetition);
    const { context } = begin;
    this.begin = { ...begin, context: { ...context, signal: new StopSignal(context.signal) } };
  }

  /**
   * Claims the key; sends the kept reply if there is one.
   *
   * @returns whether the reply was sent, so that the call is over
   * @throws GatewayError INVALID_REQUEST, IDEMPOTENCY_KEY_IN_USE, IDEMPOTENCY_KEY_REUSED
   */
  async isRepeated({ call, context }: Admitted<Out>): Promise<boolean> {
    const claim = {
      accountId: call.accountId,
      key: checkIdempotencyKey(context.idempotencyKey ?? ""),
      fingerprint: fingerprintOf(call.path, this.#repetition.identity),
      callId: call.id,
      requestId: call.requestId,
    };
    const kept = await this.#deps.claims.claim(claim);
    if (kept === undefined) {
      this.#claim = claim;
      return false;
    }
    const { status, dropped = [] } = sendKept(kept, this.#client, this.#repetition);
    call.status = status;
    call.dropped = dropped;
    return true;
  }

  /**
   * Keeps the reply of a call whose charge is known, or gives the key back if it failed free of
   * charge. Before the settlement: a process that dies between the two leaves a reply without a
   * charge, not a charge without a reply.
   */
  async end(call: Call): Promise<void> {
    const claim = this.#claim;
    if (claim === undefined) return;
    try {
      await withTimeout(stateWaitMs, this.#keep(claim, call));
    } catch (error) {
      const fields = { requestId: call.requestId, callId: call.id, err: error };
      this.#deps.log.warn(fields, "the reply of a call with an idempotency key could not be kept");
    }
  }

  async #keep(claim: Claim, call: Call): Promise<void> {
    const { claims } = this.#deps;
    const isComplete = call.ending === CallEnding.COMPLETED && call.status < 400;
    if (!isComplete && call.costNanos === 0n) return claims.release(claim);
    if (await claims.keep(claim, isComplete ? this.sink.text() : undefined)) return;
    // This process was silent for so long that another call with the key took over, and is charged.
    call.isCharged = false;
    call.costNanos = 0n;
  }
}

/** The idempotent call of a request with a key that can be repeated; undefined for all others. */
export function withIdempotencyKey<Out extends Chunk>(
  adapter: CallAdapter<Out>,
  sink: Sink<Out>,
  begin: CallToAdmit,
): IdempotentCall<Out> | undefined {
  if (begin.context.idempotencyKey === undefined) return undefined;
  const { repetition } = adapter;
  return repetition && new IdempotentCall(repetition, sink, begin);
}

function fingerprintOf(path: string, identity: Repetition<never>["identity"]): Buffer {
  const hash = createHash("sha256").update(path);
  for (const part of identity) hash.update("\n").update(part);
  return hash.digest();
}

/**
 * Cancelled only when the gateway stops. A client that lost its connection repeats the request, and
 * gets the reply that was completed meanwhile.
 */
class StopSignal extends CancelSource {
  constructor(client: CancelSignal) {
    super();
    const onAbort = (): void => {
      if (client.reason instanceof GatewayStopping) this.cancel(client.reason);
    };
    if (client.aborted) onAbort();
    else client.addEventListener("abort", onAbort);
  }
}
