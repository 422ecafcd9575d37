/** Where a job's news go: the vendor never learns of it, for it would sign with the operator's own secret. Pure. */
import { readPublicUrl } from "../http/public-url.ts";
import { invalid } from "../dialect/body-members.ts";
import type { NativeAsk } from "./context.ts";

/** What is said of a callback. */
export interface Callback {
  readonly url: string | null;
  /** What its receiver knows the job by; null: nothing was said. */
  readonly id: string | null;
  readonly wantsProgress: boolean;
}

/** The longest callback id in characters. */
const idCharsMax = 255;

/** Reads the vendor's own field, else the header. @throws GatewayError INVALID_REQUEST */
export function readCallback(
  { at, request }: Pick<NativeAsk, "at" | "request">,
  allowHosts: readonly string[],
): Callback {
  const said = at.api.callback?.read(request) ?? {};
  const written = said.url ?? request.headers["x-callback-url"] ?? "";
  const id = request.headers["x-callback-id"]?.trim() || null;
  const { wantsProgress = true } = said;
  if (id !== null && id.length > idCharsMax) {
    throw invalid(`x-callback-id must not be longer than ${idCharsMax} characters`);
  }
  if (written === "") return { url: null, id, wantsProgress };
  const read = readPublicUrl(written, allowHosts);
  if ("url" in read) return { url: read.url.href, id, wantsProgress };
  throw invalid(`The callback ${read.problem}`);
}
