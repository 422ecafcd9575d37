import { replyBytesMax } from "../../config/limits.ts";
import type { VendorReply } from "../../vendor/vendor.ts";
import { unusable } from "./failures.ts";

/**
 * The body of a vendor's complete reply; `undefined`: it is streamed. A complete one is read before its head is passed
 * on, so that a broken one is still an error and not half a reply.
 *
 * @param isStreamed default: where its content type is that of a stream of events
 * @throws GatewayError UPSTREAM_ERROR where it is neither JSON nor a stream of events
 * @throws HttpFailure where it was cut
 */
export async function readAnswer(
  { headers, body }: VendorReply,
  isStreamed = (headers["content-type"] ?? "").startsWith("text/event-stream"),
): Promise<Buffer | undefined> {
  const type = headers["content-type"] ?? "";
  const encoding = headers["content-encoding"] ?? "identity";
  if (encoding !== "identity") throw unusable(`content-encoding ${encoding}, not asked for`);
  if (isStreamed) return undefined;
  if (!type.includes("json")) throw unusable(`content-type ${type || "(none)"}`);
  const whole = await body.whole(replyBytesMax);
  if (whole[0] !== 0x7b && !whole.toString("latin1", 0, 64).trimStart().startsWith("{")) {
    throw unusable("a body that is no JSON object");
  }
  return whole;
}
