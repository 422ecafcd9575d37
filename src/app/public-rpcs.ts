/** Serves RPCs over Connect and gRPC-web on the public listener. */
import type { ContextValues } from "@connectrpc/connect";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { createRpcHandlers, type RouterOptions } from "../edge/rpc/router.ts";

/**
 * Serves RPCs on the public listener. One route for each service: with one for each RPC and HTTP
 * method, 1,800 routes took a fifth of the CPU of opening a gateway in a warm process.
 *
 * @param contextValues context values of a request. None by default
 */
export function registerRpcs(
  scope: FastifyInstance,
  options: RouterOptions,
  contextValues: (request: FastifyRequest) => ContextValues | undefined = () => undefined,
): void {
  const rpcs = createRpcHandlers(options);
  for (const { typeName } of options.services.map(({ service }) => service)) {
    scope.all<{ Params: { method: string } }>(`/${typeName}/:method`, (request, reply) => {
      const handle = rpcs.get(`/${typeName}/${request.params.method}`);
      if (handle === undefined) return reply.callNotFound();
      reply.hijack();
      void handle(request.raw, reply.raw, contextValues(request));
    });
  }
}
