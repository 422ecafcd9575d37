import type { FastifyReply, FastifyRequest } from "fastify";
import type { RestRoute } from "./route-table.ts";
import type { ScopeOptions } from "./scope.ts";

/** What registering one route needs. */
export interface RouteContext extends ScopeOptions {
  readonly route: RestRoute;
  /** Resolves the request id and the caller before the body is read. */
  readonly onRequest: (request: FastifyRequest, reply: FastifyReply) => Promise<void>;
}
