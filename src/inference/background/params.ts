/** What the task of a response in the background carries: where its request is, and what its record says. */
import type { JsonObject } from "@bufbuild/protobuf";
import { textAt } from "../../dialect/json.ts";

/** See {@link backgroundOf}. */
export interface BackgroundParams {
  readonly accountId: string;
  /** The id of the response. */
  readonly responseId: string;
  /** Our id of the call, which the response's is made of. */
  readonly callId: string;
  /** The path that was called. */
  readonly path: string;
  /** Whether its events are kept, for those who want to read it as a stream. */
  readonly isStreamed: boolean;
}

/** Parameters of tasks that callers submit have closed schemas, none of which knows this name. */
const member = "response";

/** As the parameters of a task. */
export function backgroundParams(params: BackgroundParams): JsonObject {
  return { [member]: { ...params } };
}

/** What is in the parameters of a task; `undefined`: it makes no response in the background. */
export function backgroundOf(params: JsonObject): BackgroundParams | undefined {
  const found = params[member];
  if (typeof found !== "object" || found === null || Array.isArray(found)) return undefined;
  return {
    accountId: textAt(found, "accountId"),
    responseId: textAt(found, "responseId"),
    callId: textAt(found, "callId"),
    path: textAt(found, "path"),
    isStreamed: found["isStreamed"] === true,
  };
}
