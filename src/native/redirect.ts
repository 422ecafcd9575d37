/** One redirect, for routes whose vendor sends on to where its files lie: to hosts that the table names, and without
 * the credential. Everywhere else a redirect is a failure, and its address goes to nobody. */
import { createHttpClient } from "../http/client.ts";
import type { NativePassRoute } from "../vendor/native.ts";
import type { VendorReply } from "../vendor/vendor.ts";
import type { NativeAsk } from "./context.ts";

/** The reply that a redirect leads to; a reply that is none stays what it is. */
export async function followed(
  { at, route, request, signal }: NativeAsk<NativePassRoute>,
  reply: VendorReply,
): Promise<VendorReply> {
  const { status, headers } = reply;
  const isRedirect = status === 302 || status === 303 || status === 307;
  if (!isRedirect || route.follows === undefined) return reply;
  const [{ url: base }] = at.transport.bases;
  const to = URL.parse(headers["location"] ?? "", base);
  const isOwn = to?.origin === new URL(base).origin;
  const isAllowed =
    to?.protocol === "https:" && route.follows.some((host) => host.test(to.hostname));
  if (to === null || (!isOwn && !isAllowed)) return reply;
  reply.body.cancel();
  const { range } = request.headers;
  const client = createHttpClient(to.origin, at.config.timeouts);
  try {
    const next = await client.send({
      method: "GET",
      path: `${to.pathname}${to.search}`,
      headers: { accept: "*/*", "accept-encoding": "identity", ...(range && { range }) },
      body: [],
      signal,
    });
    return { ...next, body: closing(next.body, () => client.close()) };
  } catch (error) {
    await client.close();
    throw error;
  }
}

/** A body that closes its connections with it. */
function closing(body: VendorReply["body"], close: () => Promise<void>): VendorReply["body"] {
  return {
    ready: () => body.ready(),
    take: () => body.take(),
    whole: (bytesMax) => body.whole(bytesMax),
    cancel() {
      body.cancel();
      void close();
    },
  };
}
