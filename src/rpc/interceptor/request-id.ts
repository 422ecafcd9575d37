import { ConnectError, type Interceptor } from "@connectrpc/connect";
import { requestIdKey, resolveRequestId } from "../../core/caller.ts";

/** Assigns a request id to every RPC, the caller's own where valid, and echoes it. */
export const requestId: Interceptor = (next) => async (request) => {
  const { contextValues, header } = request;
  let id = contextValues.get(requestIdKey);
  if (id !== "") return next(request);
  id = resolveRequestId(header.get("x-request-id"), header.get("request-id"));
  contextValues.set(requestIdKey, id);
  try {
    const response = await next(request);
    // A service may have found another id in the message.
    response.header.set("x-request-id", contextValues.get(requestIdKey));
    return response;
  } catch (error) {
    if (error instanceof ConnectError) error.metadata.set("x-request-id", id);
    throw error;
  }
};
