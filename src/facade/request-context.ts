/** The request id that stands in a body: an alternative to the header. */
import type { JsonObject } from "@bufbuild/protobuf";
import type { FastifyReply, FastifyRequest } from "fastify";
import { resolveRequestId } from "../caller.ts";
import { isRecord } from "../dialect/json.ts";

/**
 * Takes the request id of `requestContext` for a request that came with none in its headers, or with none that is
 * valid. From then on it is the request's, in the reply, in errors and in the log.
 *
 * @param names the headers that carry it
 */
export function takeRequestId(
  body: JsonObject,
  {
    request,
    reply,
    names,
  }: {
    readonly request: FastifyRequest;
    readonly reply: FastifyReply;
    readonly names: readonly string[];
  },
): void {
  const { state, headers } = request;
  const context = body["requestContext"] ?? body["request_context"];
  if (state === undefined || state.requestId === "" || !isRecord(context)) return;
  const told = context["requestId"] ?? context["request_id"];
  const isSent = [headers["x-request-id"], headers["request-id"]].includes(state.requestId);
  if (isSent || typeof told !== "string" || resolveRequestId(told) !== told) return;
  request.state = { ...state, requestId: told };
  for (const name of names) reply.header(name, told);
}
