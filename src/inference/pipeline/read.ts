/** Reads a request as far as billing and routing need it, and finds its model. */
import type { ModelConfig } from "../../config/config.ts";
import { requireActive } from "../../core/access.ts";
import { type Admitted, admitModel, admitTextModel } from "./admit.ts";
import type { CallAdapter, Chunk, ReadRequest } from "./adapter.ts";
import type { Call } from "./call.ts";

/** A call whose request has been read. */
export interface ReadCall<Out extends Chunk> extends Admitted<Out> {
  readonly request: ReadRequest<Out>;
  readonly model: ModelConfig;
}

/** Reads the request. A suspended account is refused first. @throws GatewayError */
export function read<Out extends Chunk>(admitted: Admitted<Out>): ReadCall<Out> {
  const { call, adapter, context, deps } = admitted;
  const { caller } = context;
  requireActive(caller);
  const request = readRequest(call, adapter);
  const { stream, model: key } = request.text;
  call.stream = stream;
  call.model = key;
  const find = adapter.acceptsAnyModel ? admitModel : admitTextModel;
  const model = find(deps.catalogue, caller, key);
  request.checkModel(model);
  return { ...admitted, request, model };
}

/** Reads the request. The call record of an invalid one still names its model. */
function readRequest<Out extends Chunk>(call: Call, adapter: CallAdapter<Out>): ReadRequest<Out> {
  try {
    return adapter.read();
  } catch (error) {
    call.model = adapter.modelName();
    throw error;
  }
}
