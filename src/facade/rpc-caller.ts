/** Who calls, as the facade's RPCs are told. */
import { type ContextValues, createContextValues } from "@connectrpc/connect";
import type { FastifyRequest } from "fastify";
import { callerKey, requestIdKey } from "../caller.ts";

/** What goes with an RPC beside its message. */
export interface RpcCaller {
  readonly values: ContextValues;
  /** A service in another process reads these instead of the values. */
  readonly header: Readonly<Record<string, string>>;
}

/** The caller of an authenticated request. A route that answers without a request id gives none. */
export function rpcCaller({ state }: FastifyRequest): RpcCaller {
  if (state === undefined) throw new Error("the request was not authenticated");
  const { caller, key, requestId } = state;
  const values = createContextValues().set(callerKey, caller);
  const authorization = `Bearer ${key}`;
  if (requestId === "") return { values, header: { authorization } };
  values.set(requestIdKey, requestId);
  return { values, header: { authorization, "x-request-id": requestId } };
}
