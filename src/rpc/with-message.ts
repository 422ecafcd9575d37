import type { StreamResponse } from "@connectrpc/connect";

/** The response with another stream of messages. Put in its place: each call has a response of its own, and a copy
 * would make headers that nobody asks for. */
export function withMessage(
  response: StreamResponse,
  message: StreamResponse["message"],
): StreamResponse {
  (response as { message: StreamResponse["message"] }).message = message;
  return response;
}
