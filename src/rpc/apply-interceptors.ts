import type { Interceptor, StreamRequest, UnaryRequest } from "@connectrpc/connect";

type Next = Parameters<Interceptor>[0];
type Handle = (request: UnaryRequest | StreamRequest) => ReturnType<Next>;

/** Wraps `handle` in interceptors; the first is the outermost. */
export function applyInterceptors(handle: Handle, interceptors: readonly Interceptor[]): Handle {
  return interceptors.reduceRight<Handle>((next, interceptor) => interceptor(next), handle);
}
