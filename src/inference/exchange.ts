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
    options.calls.enter();
    const run = new Run(options, request, context);
    try {
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
      await run.settle();
      options.calls.leave();
    }
  };
}

function chunk(value: Uint8Array): ExchangeResponse {
  return create(ExchangeResponseSchema, { part: { case: "chunk", value } });
}
