/**
 * The path of every billable call, phase by phase. Each phase takes the result of the previous one
 * and adds to it:
 *
 * | phase | decides | file |
 * |---|---|---|
 * | admit | capacity of this process, or 503 | admit.ts |
 * | read | account, model, stream, output limit, size | admit.ts |
 * | claim | whether an idempotency key has a kept reply | idempotent-call.ts |
 * | quote | routes, price, maximum cost | quote.ts |
 * | limit | rate limits, or 429; far below them it runs together with the hold | limit.ts |
 * | hold | durable money, or 402 | hold.ts |
 * | open | attempts at vendors until one answers | open.ts |
 * | deliver | relay or translate, metered and monitored | deliver.ts |
 * | charge | usage and cost, during and after the delivery | charge.ts |
 * | settle | record, ledger, log, metrics: always | settle.ts |
 */
import type { GatewayError } from "../../core/errors.ts";
import type { CallAdapter, Chunk } from "./adapter.ts";
import { admit, type Admitted, type CallToAdmit, read } from "./admit.ts";
import { logFailure } from "./call-report.ts";
import { deliver } from "./deliver.ts";
import { newDelivery } from "./delivery.ts";
import type { Call } from "./call.ts";
import { toGatewayError } from "./failures.ts";
import { withIdempotencyKey } from "./idempotent-call.ts";
import { hold } from "./hold.ts";
import { endLimits, limit } from "./limit.ts";
import { Connection } from "./connection.ts";
import { open } from "./open.ts";
import { quote } from "./quote.ts";
import { settle, type CallEnd, type Reached } from "./settle.ts";
import { type Sink, withinSettleWait } from "../../core/sink.ts";

/** A call whose reply was sent. */
export interface CallResult {
  readonly call: Call;
  /** Resolves when the call is settled. Never rejects: the ledger reports a failure. */
  readonly settled: Promise<void>;
}

/**
 * Runs a call and pushes its reply into a sink. Resolves when the reply was sent; the settlement
 * continues after that.
 *
 * @throws GatewayError if the sink got no error event: before the head, and in styles without error
 * events
 */
export async function runCall<Out extends Chunk>(
  adapter: CallAdapter<Out>,
  client: Sink<Out>,
  given: CallToAdmit,
): Promise<CallResult> {
  const idempotent = withIdempotencyKey(adapter, client, given);
  const { sink, begin } = idempotent ?? { sink: client, begin: given };
  const admitted = admit(adapter, begin);
  const ended: CallEnd = {
    connection: new Connection(admitted),
    delivery: newDelivery(),
    idempotent,
  };
  let reached: Reached<Out> = admitted;
  try {
    const readCall = (reached = read(admitted));
    if (idempotent !== undefined && (await idempotent.isRepeated(readCall))) {
      ended.delivery.isDone = true;
      return { call: admitted.call, settled: settled(reached, ended) };
    }
    const quoting = quote(readCall);
    const quoted = (reached = quoting instanceof Promise ? await quoting : quoting);
    const limiting = limit(quoted);
    if (limiting?.isFirst === true) await limiting.admitted;
    const { trace } = admitted.call;
    trace?.startWait();
    const held = (reached = await hold(quoted));
    trace?.endWait("uas.hold");
    if (limiting?.isFirst === false) await limiting.admitted;
    const opened = (reached = await open(held, ended.connection));
    const delivered = deliver(opened, sink, ended);
    if (delivered !== undefined) await delivered;
  } catch (error) {
    reached = { ...reached, ...ended.connection.unfinished };
    const reported = failed(reached, error, ended);
    await withinSettleWait(settled(reached, ended));
    throw reported;
  }
  return { call: admitted.call, settled: settled(reached, ended) };
}

/** Names the ending of a failed call, logs the failure, and returns the caller's error. */
function failed<Out extends Chunk>(
  { call, context, deps }: Reached<Out>,
  error: unknown,
  { connection, delivery }: CallEnd,
): GatewayError {
  const reported = toGatewayError(error, context.signal);
  connection.failed(error);
  connection.client.endFailed(reported, delivery.isDone);
  if (call.heldNanos === undefined) call.hasOwnRecord = deps.refusals.passes(call);
  if (call.hasOwnRecord) logFailure(call, reported, deps.log);
  return reported;
}

async function settled<Out extends Chunk>(reached: Reached<Out>, ended: CallEnd): Promise<void> {
  try {
    await settle(reached, ended);
  } catch {
    // Reported by the ledger.
  } finally {
    reached.call.trace?.end(reached.call);
    endLimits(reached.call, reached.deps);
    reached.deps.admission.leave();
  }
}

/**
 * Records a request that was refused before it became a task, as a call. @returns the error to
 * report
 */
export async function refuse<Out extends Chunk>(
  error: unknown,
  admitted: Admitted<Out>,
): Promise<GatewayError> {
  const ended: CallEnd = { connection: new Connection(admitted), delivery: newDelivery() };
  const reported = failed(admitted, error, ended);
  await settle(admitted, ended);
  return reported;
}
