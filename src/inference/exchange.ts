/**
 * The life of one text generation, phase by phase: read → hold → ask → pass on, and settle last, which
 * always runs. It knows dialects by their interface only, and nothing of REST.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { CallEnding } from "../../gen/uas/billing/v1/billing_pb.ts";
import type {
  ExchangeRequest,
  ExchangeResponseSchema,
} from "../../gen/uas/inference/v1/inference_service_pb.ts";
import { type ExchangeContext, type ExchangeOptions, Run } from "./run.ts";

type Part = MessageInitShape<typeof ExchangeResponseSchema>;

/** Runs one call. A failure before the head is thrown; one after it ends the body as its dialect does. */
export type Exchange = (
  request: ExchangeRequest,
  context: ExchangeContext,
) => AsyncGenerator<Part, void>;

export function createExchange(options: ExchangeOptions): Exchange {
  return async function* exchange(request, context) {
    options.calls.enter();
    const run = new Run(options, request, context);
    try {
      run.read();
      await run.hold();
      await run.ask();
      yield { part: { case: "head", value: run.head() } };
      for await (const bytes of run.body()) {
        run.call.passed();
        yield { part: { case: "chunk", value: bytes } };
      }
      run.call.end(CallEnding.COMPLETED);
    } catch (error) {
      const told = run.fail(error);
      if (!run.isHeadOut) throw told;
      if (run.call.ending !== CallEnding.COMPLETED)
        yield { part: { case: "chunk", value: run.dialect.errorEvent(told) } };
    } finally {
      await run.settle();
      options.calls.leave();
    }
  };
}
