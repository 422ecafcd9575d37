/** Reads a request as far as a call needs it, and finds its model. */
import type { ModelConfig } from "../../config/config.ts";
import { requireActive } from "../../core/access.ts";
import { type Admitted, admitModel, admitTextModel } from "./admit.ts";
import type { CallAdapter, Chunk, ReadRequest } from "./adapter.ts";
import type { Call } from "./call.ts";

/** A call whose request is known. */
export interface Asked<Out extends Chunk> extends Admitted<Out> {
  readonly request: ReadRequest<Out>;
  readonly model: ModelConfig;
}

/** Reads the request; of a suspended account it reads nothing. @throws GatewayError */
export function read<Out extends Chunk>(admitted: Admitted<Out>): Asked<Out> {
  const { call, adapter, context, deps } = admitted;
  const { caller } = context;
  requireActive(caller);
  const request = readRequest(call, adapter);
  const { stream, model: key } = request.text;
  call.stream = stream;
  call.model = key;
  const find = adapter.takesAnyModel ? admitModel : admitTextModel;
  return { ...admitted, request, model: find(deps.catalogue, caller, key) };
}

/** The request. Where it is refused, its record still says which model it names. */
function readRequest<Out extends Chunk>(call: Call, adapter: CallAdapter<Out>): ReadRequest<Out> {
  try {
    return adapter.read();
  } catch (error) {
    call.model = adapter.named();
    throw error;
  }
}
