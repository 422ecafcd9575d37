/** What costs nothing: counts of tokens, files, and what else is the caller's own at a vendor. */
import { replyBytesMax } from "../config/limits.ts";
import { answering } from "../core/database-lost.ts";
import { AddressRewriter, rewriteAddresses } from "../dialect/json/addresses.ts";
import { createHttpClient } from "../http/client.ts";
import { HttpFailure } from "../http/failure.ts";
import { admitModel } from "../inference/pipeline/admit.ts";
import { unusable } from "../inference/pipeline/failures.ts";
import { failureError } from "../inference/upstream-refusal.ts";
import type { NativePassRoute } from "../vendor/native.ts";
import type { VendorReply } from "../vendor/vendor.ts";
import {
  outwardAddresses,
  type NativeAsk,
  type NativeContext,
  type NativeSink,
} from "./context.ts";
import { checkedModel } from "./models.ts";
import { judge } from "./refusal.ts";
import { parseObject } from "./reply-stream.ts";
import { customerBody, customerHeaders, isJson, vendorRequest, type ModelChange } from "./send.ts";
import { checkOwned, checkReferences, referencesOf, claimObjects } from "./store.ts";

/** Told of a JSON body that came whole, before it is passed on. */
type OnWhole = (body: Buffer) => Promise<void>;

/** Passes a request on. A failure before the head is thrown. @param onWhole default: the reply is not looked at */
export async function pass(
  ask: NativeAsk<NativePassRoute>,
  context: NativeContext,
  onWhole?: OnWhole,
): Promise<void> {
  const { route, request } = ask;
  const change = modelChange(ask, context);
  if (change !== undefined) await checkReferences(ask, context);
  if (route.owns !== undefined) await checkOwned(ask, context, [route.owns(request)]);
  const reply = await send(ask, context, change);
  try {
    const claims = onWhole ?? claiming(ask, context, reply);
    const isModels = route.model !== undefined && referencesOf(ask).length === 0;
    const { isJobs } = route;
    await relay(ask, context, { reply, sink: ask.sink, onWhole: claims, isJobs, isModels });
  } finally {
    reply.body.cancel();
  }
}

function modelChange(
  { at, route, request, caller }: NativeAsk<NativePassRoute>,
  { findModel, catalogue }: NativeContext,
): ModelChange | undefined {
  if (route.model === undefined) return undefined;
  const { named, route: to } = checkedModel(request, route.model, {
    find: (name) => findModel(at.vendor.name, name),
    authorize: (key) => admitModel(catalogue, caller, key),
  });
  return { named, vendorModel: to.model };
}

async function send(
  ask: NativeAsk<NativePassRoute>,
  context: NativeContext,
  change: ModelChange | undefined,
): Promise<VendorReply> {
  const sent = vendorRequest(ask, context.publicUrl(), change);
  const reply = await asked(ask.at.transport.send({ ...sent, signal: ask.signal }));
  return readable(await asked(followed(ask, reply)));
}

/** Nobody asked for a reply that must be decoded: passed on without its header, it would be noise. */
function readable(reply: VendorReply): VendorReply {
  const { "content-encoding": encoding = "identity" } = reply.headers;
  if (encoding === "identity") return reply;
  reply.body.cancel();
  throw unusable(`content-encoding ${encoding}, not asked for`);
}

/** What a vendor answers. @throws GatewayError where it does not */
export async function asked<Reply>(asking: Promise<Reply>): Promise<Reply> {
  try {
    return await asking;
  } catch (error) {
    throw error instanceof HttpFailure ? failureError(error.kind, error) : error;
  }
}

/** Remembers whose the objects are that the reply tells of. */
function claiming(
  { at, route, caller }: NativeAsk<NativePassRoute>,
  { pool }: NativeContext,
  { headers }: VendorReply,
): OnWhole | undefined {
  const { creates } = route;
  if (creates === undefined) return undefined;
  const owner = { vendor: at.config.name, accountId: caller.accountId };
  return async (body) => {
    const json = parseObject(body.toString("utf8"));
    await answering(claimObjects(pool, owner, creates({ headers, json })));
  };
}

/** At which vendor a reply is, and whose. */
interface Owner extends Pick<NativeAsk, "at"> {
  readonly caller: Pick<NativeAsk["caller"], "accountId">;
}

interface Relay {
  readonly sink: NativeSink;
  readonly reply: VendorReply;
  readonly onWhole: OnWhole | undefined;
  /** See {@link NativePassRoute.isJobs}. */
  readonly isJobs?: boolean | undefined;
  /** See {@link Judging.isModels}. */
  readonly isModels?: boolean;
}

/** Passes a reply on. */
export async function relay(
  ask: Owner,
  context: NativeContext,
  { reply, sink, onWhole, isJobs = false, isModels = false }: Relay,
): Promise<void> {
  const { status, headers } = reply;
  const publicUrl = context.publicUrl();
  const addresses = outwardAddresses(ask, publicUrl);
  if (status < 200 || status > 299) {
    const { refusal, body } = await judge(reply, ask.at, { ...context, isJobs, isModels });
    if (!refusal.pass) throw refusal.error;
    const told = rewriteAddresses(body, addresses);
    const shown = customerHeaders(ask, publicUrl, { headers, length: told.length });
    sink.whole({ status, headers: shown }, told);
    return;
  }
  if (onWhole !== undefined) {
    const body = await reply.body.whole(replyBytesMax);
    await onWhole(body);
    const told = customerBody({ at: ask.at, accountId: ask.caller.accountId }, body, context);
    const shown = customerHeaders(ask, publicUrl, { headers, length: told.length });
    sink.whole({ status, headers: shown }, told);
    return;
  }
  sink.head({
    status,
    headers: customerHeaders(ask, publicUrl, { headers, length: undefined }),
  });
  // Files are bytes of somebody: only what says that it is text of the vendor's has addresses.
  const isText = isJson(headers) || (headers["content-type"] ?? "").startsWith("text/event-");
  const rewriter = new AddressRewriter(isText ? addresses : []);
  while (await reply.body.ready()) {
    for (const piece of reply.body.take()) {
      const passed = rewriter.push(piece);
      if (passed.length > 0) await sink.chunk(passed);
    }
  }
  const rest = rewriter.end();
  if (rest.length > 0) await sink.chunk(rest);
}

/* One redirect, for routes whose vendor sends on to where its files lie: to hosts that the table names, and without
 * the credential. Everywhere else a redirect is a failure, and its address goes to nobody. */

/** The reply that a redirect leads to; a reply that is none stays what it is. */
async function followed(
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
