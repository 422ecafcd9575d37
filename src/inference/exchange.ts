/**
 * The life of one text generation, phase by phase: read → hold → ask → pass on, and settle last, which
 * always runs. It knows dialects by their interface only, and nothing of REST.
 */
import { create } from "@bufbuild/protobuf";
import { CallEnding } from "../../gen/uas/billing/v1/billing_pb.ts";
import {
  type ExchangeRequest,
  type ExchangeResponse,
  ExchangeResponseSchema,
} from "../../gen/uas/inference/v1/inference_service_pb.ts";
import { type ExchangeContext, type ExchangeOptions, Run } from "./run.ts";

/** Runs one call. A failure before the head is thrown; one after it ends the body as its dialect does. */
export type Exchange = (
  request: ExchangeRequest,
  context: ExchangeContext,
) => AsyncGenerator<ExchangeResponse, void>;

export function createExchange(options: ExchangeOptions): Exchange {
  return async function* exchange(request, context) {
    const run = new Run(options, request, context);
    let isCounted = false;
    try {
      options.calls.enter();
      isCounted = true;
      run.read();
      await run.hold();
      await run.ask();
      yield create(ExchangeResponseSchema, { part: { case: "head", value: run.head() } });
      // A loop, not a generator of its own: each generator costs every chunk three promises.
      for (;;) {
        const bytes = await run.next();
        if (bytes === undefined) break;
        run.call.passed();
        yield chunk(bytes);
      }
      run.call.end(CallEnding.COMPLETED);
    } catch (error) {
      const told = run.fail(error);
      if (!run.isHeadOut) throw told;
      if (run.call.ending !== CallEnding.COMPLETED) yield chunk(run.dialect.errorEvent(told));
    } finally {
      // The client waits for its settlement a moment, so that it can find its call at once; not longer:
      // the reply is out, and the settlement is made whether anybody waits for it or not.
      await orLater(run.settle().finally(() => isCounted && options.calls.leave()));
    }
  };
}

/** How long a client waits for its settlement, in milliseconds. */
const settleWaitMs = 1_000;

/** Resolves with `work`, at the latest after {@link settleWaitMs}. Its failure has been reported. */
async function orLater(work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, settleWaitMs);
  });
  await Promise.race([work.catch(() => {}), late]);
  clearTimeout(timer);
}

/** As `create` would make it, without going through the schema for each chunk. */
function chunk(value: Uint8Array): ExchangeResponse {
  return { $typeName: ExchangeResponseSchema.typeName, part: { case: "chunk", value } };
}
