/** What costs nothing: counts of tokens, files, and what else is the caller's own at a vendor. */
import type { ExchangeResponse } from "../../gen/uas/native/v1/native_service_pb.ts";
import { HttpFailure } from "../http/failure.ts";
import { failureError } from "../inference/upstream-refusal.ts";
import type { NativePassRoute } from "../vendor/native.ts";
import type { VendorReply } from "../vendor/vendor.ts";
import { type NativeAsk, type NativeContext, outwardAddresses } from "./context.ts";
import { judge } from "./judge.ts";
import { checkedModel } from "./models.ts";
import { chunkPart, headPart, wholeReply } from "./parts.ts";
import { AddressRewriter, rewriteAddresses } from "./rewrite.ts";
import { customerHeaders, isJson, type ModelChange, vendorRequest } from "./send.ts";

/** Passes a request on. A failure before the head is thrown. */
export async function* pass(
  ask: NativeAsk<NativePassRoute>,
  context: NativeContext,
): AsyncGenerator<ExchangeResponse> {
  const change = modelChange(ask, context);
  const reply = await send(ask, context, change);
  try {
    yield* relay(ask, context, reply);
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
    authorize: (key) => catalogue.authorize(caller, key),
  });
  return { named, vendorModel: to.model };
}

async function send(
  ask: NativeAsk<NativePassRoute>,
  context: NativeContext,
  change: ModelChange | undefined,
): Promise<VendorReply> {
  const sent = vendorRequest(ask, context.publicUrl(), change);
  try {
    return await ask.at.transport.send({ ...sent, signal: ask.signal });
  } catch (error) {
    throw error instanceof HttpFailure ? failureError(error.kind, error) : error;
  }
}

async function* relay(
  ask: NativeAsk<NativePassRoute>,
  context: NativeContext,
  reply: VendorReply,
): AsyncGenerator<ExchangeResponse> {
  const { status, headers } = reply;
  const publicUrl = context.publicUrl();
  const addresses = outwardAddresses(ask, publicUrl);
  if (status < 200 || status > 299) {
    const { refusal, body } = await judge(reply, ask.at, context);
    if (!refusal.pass) throw refusal.error;
    const told = rewriteAddresses(body, addresses);
    const shown = customerHeaders(ask, publicUrl, { headers, length: told.length });
    yield* wholeReply({ status, headers: shown }, told);
    return;
  }
  yield headPart({
    status,
    headers: customerHeaders(ask, publicUrl, { headers, length: undefined }),
  });
  // Files are bytes of somebody: only what says that it is text of the vendor's has addresses.
  const isText = isJson(headers) || (headers["content-type"] ?? "").startsWith("text/event-");
  const rewriter = new AddressRewriter(isText ? addresses : []);
  while (await reply.body.ready()) {
    for (const piece of reply.body.take()) {
      const passed = rewriter.push(piece);
      if (passed.length > 0) yield chunkPart(passed);
    }
  }
  const rest = rewriter.end();
  if (rest.length > 0) yield chunkPart(rest);
}
