/**
 * The path of every call that can cost money, phase by phase. Each phase takes the result of the one before it, and
 * adds to it:
 *
 * | phase | decides | file |
 * |---|---|---|
 * | admit | caller, account, key, limits | admit.ts |
 * | read | model, stream, output limit, size | read.ts |
 * | quote | routes, price, maximum cost | quote.ts |
 * | hold | durable money, or 402 | hold.ts |
 * | open | attempts at vendors until one answers | open.ts |
 * | deliver | relay or translate, metered and monitored | deliver.ts |
 * | settle | usage, charge, record, ledger, log, metrics: always | settle.ts |
 */
import type { GatewayError } from "../../errors.ts";
import type { CallAdapter, Chunk } from "./adapter.ts";
import { admit, type CallToAdmit } from "./admit.ts";
import { deliver, type Delivery } from "./deliver.ts";
import type { Call } from "./call.ts";
import { toldOf } from "./failures.ts";
import { hold } from "./hold.ts";
import { Connection, open } from "./open.ts";
import { quote } from "./quote.ts";
import { read } from "./read.ts";
import { explainFailure } from "./report.ts";
import { type Ended, type Reached, settle } from "./settle.ts";
import type { Sink } from "../../sink.ts";

/**
 * Runs a call and pushes its reply into a sink. Resolves when the reply is out and the call is settled; the settlement
 * is waited for a moment only.
 *
 * @returns the call as it ended
 * @throws GatewayError where the sink was not told of the failure: before the head, and in styles without error events
 */
export async function runCall<Out extends Chunk>(
  adapter: CallAdapter<Out>,
  sink: Sink<Out>,
  begin: CallToAdmit,
): Promise<Call> {
  const admitted = admit(adapter, begin);
  const connection = new Connection(admitted);
  const delivery: Delivery = { isDone: false, monitor: undefined };
  let reached: Reached<Out> = admitted;
  try {
    const asked = (reached = read(admitted));
    const quoted = (reached = await quote(asked));
    const held = (reached = await hold(quoted));
    const opened = (reached = await open(held, connection));
    await deliver(opened, sink, { connection, delivery });
  } catch (error) {
    throw failed(reached, error, { connection, delivery });
  } finally {
    await settledSoon(reached, { connection, delivery });
  }
  return admitted.call;
}

/** What the caller is told of a failure; names the ending of the call. */
function failed<Out extends Chunk>(
  { call, context, deps }: Reached<Out>,
  error: unknown,
  { connection, delivery }: Ended,
): GatewayError {
  const told = toldOf(error, context.signal);
  connection.client.endFailed(told, delivery.isDone);
  explainFailure(call, told, deps.log);
  return told;
}

/** How long a client waits for its settlement, in milliseconds. */
const settleWaitMs = 1_000;

/**
 * Settles. The client waits for it a moment, so that it can find its call at once; not longer: the reply is out, and
 * the settlement is made whether anybody waits for it or not.
 */
function settledSoon<Out extends Chunk>(reached: Reached<Out>, ended: Ended): Promise<void> {
  const settled = settle(reached, ended).finally(() => reached.deps.calls.leave());
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, settleWaitMs);
    const onEnd = (): void => {
      clearTimeout(timer);
      resolve();
    };
    // Its failure has been reported.
    settled.then(onEnd, onEnd);
  });
}
