/** The items of whole bodies, as they stand on the wire: what a conversation is continued with. */
import { parseObject, parseReply } from "../json.ts";

/**
 * The input items of a request body; a plain string is one user message.
 *
 * @throws GatewayError INVALID_REQUEST where the body or its `input` is of another form
 */
export function inputItemsOf(body: Uint8Array): unknown[] {
  const reader = parseObject(body);
  const input = reader.value("input");
  if (input === undefined) return [];
  if (typeof input === "string") return [{ type: "message", role: "user", content: input }];
  if (Array.isArray(input)) return input as unknown[];
  throw reader.invalid("must be a string or an array of items", "input");
}

/**
 * The output items of a response; empty where it has none.
 *
 * @throws UnreadableReplyError where it is no JSON object
 */
export function outputItemsOf(response: Buffer): unknown[] {
  const { output } = parseReply(response);
  return Array.isArray(output) ? (output as unknown[]) : [];
}
