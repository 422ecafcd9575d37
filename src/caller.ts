/** Who is calling, and what travels with every RPC beside its message. */
import { createContextKey } from "@connectrpc/connect";

/** Who is calling. What each kind may call is the `access` option of every RPC. */
export type Caller =
  | {
      readonly kind: "key";
      readonly accountId: string;
      readonly keyId: string;
      /** The only models that the key may use; `undefined`: every model. */
      readonly models: ReadonlySet<string> | undefined;
    }
  | { readonly kind: "session"; readonly accountId: string }
  | { readonly kind: "operator" }
  | { readonly kind: "anonymous" };

/** Nobody in particular: calls of `ACCESS_PUBLIC` only. */
export const anonymous: Caller = { kind: "anonymous" };

/** The operator: the command line, or the bearer of the operator token on the internal listener. */
export const operator: Caller = { kind: "operator" };

/** The caller of an RPC, set by the authenticate interceptor (or by an edge that has done its work). */
export const callerKey = createContextKey<Caller | undefined>(undefined, {
  description: "caller",
});

/** The resolved request id of an RPC, set by the request-id interceptor (or by an edge). */
export const requestIdKey = createContextKey<string>("", { description: "request id" });

/** Checks a presented API key. Resolves to `undefined` where it is unknown, disabled or deleted. */
export type Authenticate = (key: string) => Promise<Caller | undefined>;
