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
import type { GatewayError } from "../../core/errors.ts";
import type { CallAdapter, Chunk } from "./adapter.ts";
import { admit, type CallToAdmit } from "./admit.ts";
import { deliver } from "./deliver.ts";
import type { Call } from "./call.ts";
import { toldOf } from "./failures.ts";
import { hold } from "./hold.ts";
import { Connection, open } from "./open.ts";
import { quote } from "./quote.ts";
import { read } from "./read.ts";
import { explainFailure, settle, type Ended, type Reached } from "./settle.ts";
import { type Sink, withinSettleWait } from "../../core/sink.ts";

/** A call whose reply is out. */
export interface Delivered {
  readonly call: Call;
  /** Resolves when the call is settled. Never rejects: a failure has been reported. */
  readonly settled: Promise<void>;
}

/**
 * Runs a call and pushes its reply into a sink. Resolves when the reply is out; it is settled whether anybody waits for
 * that or not.
 *
 * @throws GatewayError where the sink was not told of the failure: before the head, and in styles without error events
 */
export async function runCall<Out extends Chunk>(
  adapter: CallAdapter<Out>,
  sink: Sink<Out>,
  begin: CallToAdmit,
): Promise<Delivered> {
  const admitted = admit(adapter, begin);
  const ended: Ended = {
    connection: new Connection(admitted),
    delivery: { isDone: false, isWithheld: false, isCostTold: false, monitor: undefined },
  };
  let reached: Reached<Out> = admitted;
  try {
    const asked = (reached = read(admitted));
    const quoted = (reached = await quote(asked));
    const held = (reached = await hold(quoted));
    const opened = (reached = await open(held, ended.connection));
    await deliver(opened, sink, ended);
  } catch (error) {
    const told = failed(reached, error, ended);
    await withinSettleWait(settled(reached, ended));
    throw told;
  }
  return { call: admitted.call, settled: settled(reached, ended) };
}

/** What the caller is told of a failure; names the ending of the call. */
function failed<Out extends Chunk>(
  { call, context, deps }: Reached<Out>,
  error: unknown,
  { connection, delivery }: Ended,
): GatewayError {
  const told = toldOf(error, context.signal);
  connection.failed(error);
  connection.client.endFailed(told, delivery.isDone);
  explainFailure(call, told, deps.log);
  return told;
}

async function settled<Out extends Chunk>(reached: Reached<Out>, ended: Ended): Promise<void> {
  try {
    await settle(reached, ended);
  } catch {
    // Reported by the ledger.
  } finally {
    reached.deps.calls.leave();
  }
}
