/** Serves the contract over the network, with the same services and interceptors on every listener. */
import type { ConnectRouter, Interceptor } from "@connectrpc/connect";
import { bodyBytesMax } from "../config/limits.ts";
import type { Service } from "../core/service.ts";

/** The RPC options of a listener. */
export interface RouterOptions {
  readonly services: readonly Service[];
  readonly interceptors: readonly Interceptor[];
  /** Aborted when running RPCs must end. */
  readonly shutdownSignal: AbortSignal;
}

/** The largest request body plus the message around it, in bytes. */
const messageBytesMax = bodyBytesMax + 1024 * 1024;

/** Options for Connect's adapters. */
export function routerOptions({ services, interceptors, shutdownSignal }: RouterOptions) {
  return {
    interceptors: [...interceptors],
    shutdownSignal,
    readMaxBytes: messageBytesMax,
    routes(router: ConnectRouter): void {
      for (const { service, implementation } of services) router.service(service, implementation);
    },
  };
}
