/** Passes free requests to a vendor: token counts, files, and other objects of the caller. */
import { replyBytesMax } from "../core/limits.ts";
import type { KeyRef } from "../core/caller.ts";
import { mapDatabaseLoss } from "../core/database-lost.ts";
import { AddressRewriter, rewriteAddresses } from "../wire/json/addresses.ts";
import { createHttpClient } from "../http/client.ts";
import { unusableReply } from "../routing/upstream-refusal.ts";
import type { NativePassRoute } from "../provider/native.ts";
import type { VendorReply } from "../provider/reply.ts";
import { type NativeContext } from "./context.ts";
import { outwardAddresses, type NativeExchange, type NativeSink, withCredential } from "./mount.ts";
import { checkedModel } from "./models.ts";
import { classifyRefusal } from "./refusal.ts";
import { parseObject } from "./reply-stream.ts";
import { customerBody, customerHeaders, isJson, vendorRequest, type ModelChange } from "./send.ts";
import { checkOwned, checkReferences, referencesOf, claimObjects, removeObject } from "./store.ts";

/** Called with a complete JSON body before it is passed on. */
type OnWhole = (body: Buffer) => Promise<void>;

/**
 * Forwards a request. A failure before the head is thrown; a failure of the vendor's connection as
 * HttpFailure.
 *
 * @param onWhole by default the reply is not read
 */
export async function pass(
  given: NativeExchange<NativePassRoute>,
  context: NativeContext,
  onWhole?: OnWhole,
): Promise<void> {
  const { route, request } = given;
  const change = modelChange(given, context);
  let owned = change && (await checkReferences(given, context));
  const ownName = route.ownedName?.(request);
  if (ownName !== undefined) owned = await checkOwned(given, context, [ownName]);
  const credential = owned?.credential;
  // An object that a vendor stores belongs to one credential.
  const mount = credential === undefined ? given.mount : withCredential(given.mount, credential);
  if (route.isUpload === true) {
    const { accountId } = given.caller;
    const objects = ownName === undefined ? 1 : 0;
    await context.uploads.admit({ accountId, objects, bytes: request.bytes });
  }
  const exchange = { ...given, mount };
  const reply = await send(exchange, context, change);
  try {
    if (route.isRemoval === true && ownName !== undefined && isSuccess(reply)) {
      const owner = { vendor: mount.config.name, accountId: given.caller.accountId };
      await removeObject(context.pool, owner, ownName);
    }
    const claims = onWhole ?? claimReplyObjects(exchange, context, reply);
    const isModels = route.model !== undefined && referencesOf(exchange).length === 0;
    const { isJobFailure } = route;
    await relay(exchange, context, {
      reply,
      sink: exchange.sink,
      onWhole: claims,
      isJobFailure,
      isModels,
    });
  } finally {
    reply.body.cancel();
  }
}

function isSuccess({ status }: VendorReply): boolean {
  return status >= 200 && status < 300;
}

function modelChange(
  { mount, route, request, caller }: NativeExchange<NativePassRoute>,
  { findModel, admission }: NativeContext,
): ModelChange | undefined {
  if (route.model === undefined) return undefined;
  const { named, route: to } = checkedModel(request, route.model, {
    find: (name) => findModel(mount.vendor.name, name),
    authorize: (key) => admission.model(caller, key),
  });
  const isAnyVersion = route.model.in === "path" && route.model.isAnyVersion === true;
  // The address of a model has no version.
  return { named, vendorModel: isAnyVersion ? to.model.replace(/:[^:]*$/, "") : to.model };
}

async function send(
  exchange: NativeExchange<NativePassRoute>,
  context: NativeContext,
  change: ModelChange | undefined,
): Promise<VendorReply> {
  const sent = vendorRequest(exchange, context.publicUrl(), change);
  const reply = await exchange.mount.transport.send({ ...sent, signal: exchange.signal });
  return requireIdentity(await followRedirect(exchange, reply));
}

/**
 * Refuses an encoded reply, which was not requested: its header does not pass, so clients could not
 * decode it.
 */
function requireIdentity(reply: VendorReply): VendorReply {
  const { "content-encoding": encoding = "identity" } = reply.headers;
  if (encoding === "identity") return reply;
  reply.body.cancel();
  throw unusableReply(`content-encoding ${encoding}, not requested`);
}

/** Remembers the caller as the owner of objects that the reply creates. */
function claimReplyObjects(
  { mount, route, caller }: NativeExchange<NativePassRoute>,
  { pool }: NativeContext,
  { headers }: VendorReply,
): OnWhole | undefined {
  const { creates } = route;
  if (creates === undefined) return undefined;
  const { credential } = mount;
  const owner = { vendor: mount.config.name, accountId: caller.accountId, credential };
  return async (body) => {
    const json = parseObject(body.toString("utf8"));
    await mapDatabaseLoss(claimObjects(pool, owner, creates({ headers, json })));
  };
}

/** The vendor and the account of a reply. */
interface Owner extends Pick<NativeExchange, "mount"> {
  readonly caller: KeyRef;
}

interface Relay {
  readonly sink: NativeSink;
  readonly reply: VendorReply;
  readonly onWhole: OnWhole | undefined;
  /** As {@link NativePassRoute.isJobFailure}. */
  readonly isJobFailure?: boolean | undefined;
  /** As {@link ClassifyOptions.isModels}. */
  readonly isModels?: boolean;
}

/** Passes a reply on. A refusal about the operator's account becomes a gateway error. */
export async function relay(
  exchange: Owner,
  context: NativeContext,
  { reply, sink, onWhole, isJobFailure = false, isModels = false }: Relay,
): Promise<void> {
  const { status, headers } = reply;
  const publicUrl = context.publicUrl();
  const addresses = outwardAddresses(exchange, publicUrl);
  if (!isSuccess(reply)) {
    const { refusal, body } = await classifyRefusal(reply, exchange.mount, {
      ...context,
      isJobFailure,
      isModels,
    });
    if (!refusal.isRelayed) throw refusal.error;
    const told = rewriteAddresses(body, addresses);
    const shown = customerHeaders(exchange, publicUrl, { headers, length: told.length });
    sink.whole({ status, headers: shown }, told);
    return;
  }
  if (onWhole !== undefined) {
    const body = await reply.body.whole(replyBytesMax);
    await onWhole(body);
    const told = customerBody({ mount: exchange.mount, owner: exchange.caller }, body, context);
    const shown = customerHeaders(exchange, publicUrl, { headers, length: told.length });
    sink.whole({ status, headers: shown }, told);
    return;
  }
  sink.head({
    status,
    headers: customerHeaders(exchange, publicUrl, { headers, length: undefined }),
  });
  // Files belong to customers: addresses are rewritten only in the vendor's JSON and event streams.
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

/**
 * Follows one redirect, on routes whose vendor redirects to its file storage: only to hosts that
 * the route names, and without the credential. On other routes a redirect is a failure, and its
 * address is not shown. Other replies are returned unchanged.
 */
async function followRedirect(
  { mount, route, request, signal }: NativeExchange<NativePassRoute>,
  reply: VendorReply,
): Promise<VendorReply> {
  const { status, headers } = reply;
  const isRedirect = status === 302 || status === 303 || status === 307;
  if (!isRedirect || route.follows === undefined) return reply;
  const [{ url: base }] = mount.transport.bases;
  const to = URL.parse(headers["location"] ?? "", base);
  const isOwn = to?.origin === new URL(base).origin;
  const isAllowed =
    to?.protocol === "https:" && route.follows.some((host) => host.test(to.hostname));
  if (to === null || (!isOwn && !isAllowed)) return reply;
  reply.body.cancel();
  const { range } = request.headers;
  const client = createHttpClient(to.origin, mount.config.timeouts);
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

/** A body whose cancel also closes its connections. */
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
