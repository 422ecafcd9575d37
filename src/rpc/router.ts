/** Serves the contract over the network: the same services and interceptors on every listener. */
import type { ConnectRouter, Interceptor } from "@connectrpc/connect";
import { bodyBytesMax } from "../config/limits.ts";
import type { Service } from "../core/service.ts";

/** How a listener serves RPCs. */
export interface RouterOptions {
  readonly services: readonly Service[];
  readonly interceptors: readonly Interceptor[];
  /** Aborted when running RPCs must end. */
  readonly shutdownSignal: AbortSignal;
}

/** Room for the largest body and the message around it, in bytes. */
const messageBytesMax = bodyBytesMax + 1024 * 1024;

/** The options that Connect's adapters take. */
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
