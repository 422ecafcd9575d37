/**
 * `/callbacks/{token}`: receives vendors' callbacks about tasks. The token is the credential, so no
 * API key is needed and the token is never logged. The content is not trusted: a callback only
 * triggers a poll of the vendor.
 */
import type { FastifyInstance } from "fastify";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { gatewayStopping } from "../../core/caller.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { dialects } from "../../dialect/index.ts";
import type { FacadeOptions } from "./options.ts";
import { echoRequestId, notAllowed, prepareScope, readWith } from "./scope.ts";

const url = "/callbacks/:token";
const method = "POST";

/** Registers the callback route in a separate scope. */
export async function registerCallbacks(
  scope: FastifyInstance,
  { callbacks, ...options }: FacadeOptions,
): Promise<void> {
  prepareScope(scope, { ...options, dialect: Dialect.PLATFORM });
  scope.addContentTypeParser("*", readWith(options.bodies));
  const idHeaders = dialects[Dialect.PLATFORM].requestIdHeaders;
  scope.route<{ Params: { token: string } }>({
    method,
    url,
    // Checked before the body is read, so that unknown senders cannot make the gateway read one.
    onRequest: async (request, reply) => {
      echoRequestId(request, reply, idHeaders);
      if (!options.isOpen()) {
        reply.header("connection", "close");
        throw gatewayStopping();
      }
      if (await callbacks?.isKnown(request.params.token)) return;
      reply.header("connection", "close");
      throw new GatewayError(
        ErrorCode.NOT_FOUND,
        "There is no such callback address: use the address of the submit",
      );
    },
    handler: async (request, reply) => {
      const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
      await callbacks?.take(request.params.token, body);
      return reply.send({ received: true });
    },
  });
  scope.route({
    method: scope.supportedMethods.filter((each) => each !== method),
    url,
    onRequest: async (request, reply) => {
      echoRequestId(request, reply, idHeaders);
      reply.header("allow", method);
      throw notAllowed(request.method, method);
    },
    handler: () => undefined,
  });
}
