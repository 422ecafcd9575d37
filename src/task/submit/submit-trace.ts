/** Traces submits: the trace of a task, which may run later and elsewhere, refers to its submit. */
import { own } from "../../observe/traces/names.ts";
import type { Traces } from "../../observe/traces/traces.ts";
import type { Submit } from "./submit.ts";

/** The same submit, with a span for each. Without traces it is unchanged. */
export function traceSubmits(submit: Submit, traces: Traces | undefined): Submit {
  if (traces === undefined) return submit;
  return async (read, submitter, overrides) => {
    const { caller, requestId, traceparent } = submitter;
    const { key: model } = read.taskModel.model;
    const span = traces.start(`submit task ${model}`, {
      role: "producer",
      traceparent,
      attributes: {
        [own.requestId]: requestId,
        [own.account]: caller.accountId,
        [own.key]: caller.keyId,
        [own.model]: model,
      },
    });
    const traced = { ...submitter, traceparent: span?.traceparent };
    try {
      const submitted = await submit(read, traced, overrides);
      span?.set({ [own.task]: submitted.task.id });
      span?.end();
      return submitted;
    } catch (error) {
      span?.end(error instanceof Error ? error.message : "failed");
      throw error;
    }
  };
}
