/** What a vendor is sent of a request, and what a customer gets to see of the reply. */
import type { NativeSend } from "../vendor/native-http.ts";
import { type BodyChanges } from "./body.ts";
import {
  inwardAddresses,
  outwardAddresses,
  passHeaders,
  type NativeAsk,
  type NativeContext,
} from "./context.ts";
import type { NamedModel } from "./models.ts";
import { withoutParams } from "./path.ts";
import { rewriteAddresses, rewriteHeader } from "../dialect/json/addresses.ts";

/** A model's name and what stands in its place. */
export interface ModelChange {
  readonly named: NamedModel;
  /** The vendor's name. */
  readonly vendorModel: string;
}

/** The request for the vendor: the model by its own name, our addresses as its, no callback, no foreign header. */
export function vendorRequest(
  ask: NativeAsk,
  publicUrl: string,
  change?: ModelChange,
): Omit<NativeSend, "signal"> {
  const { at, route, request, method } = ask;
  const { callback, urlHeaders } = at.api;
  const headers = passHeaders(request.headers, at.requestHeaders);
  const addresses = inwardAddresses(ask, publicUrl);
  for (const name of urlHeaders ?? []) {
    const value = headers[name];
    if (value !== undefined) headers[name] = rewriteHeader(value, addresses);
  }
  const [first] = at.transport.bases;
  const { base, path } = route.target?.(request) ?? { base: first.name, path: ask.path };
  const query = withoutParams(ask.query, callback?.params ?? []);
  const target = `${pathOf(path, change)}${query === "" ? "" : `?${query}`}`;
  // Bytes of files are nobody's to read, whatever type they say they have.
  const isBytes = route.kind === "pass" && route.model === undefined;
  const body = request.forVendor(
    isBytes ? {} : { ...changesOf(change), without: callback?.members ?? [], addresses },
  );
  return { base, method, target, headers, body };
}

/** What a customer gets of a whole body: the vendor's addresses as ours, those without a key as keys of their own. */
export function customerBody(
  { at, accountId }: { readonly at: NativeAsk["at"]; readonly accountId: string },
  body: Buffer,
  { publicUrl, links }: Pick<NativeContext, "publicUrl" | "links">,
): Buffer {
  const linked = links.replace(body, { at, accountId, publicUrl: publicUrl() });
  return rewriteAddresses(linked, outwardAddresses({ at }, publicUrl()));
}

/** What a customer gets of a reply's headers. @param length of a whole one in bytes; `undefined`: it is streamed */
export function customerHeaders(
  ask: Pick<NativeAsk, "at">,
  publicUrl: string,
  reply: {
    readonly headers: Readonly<Record<string, string>>;
    readonly length: number | undefined;
  },
): Record<string, string> {
  const { at } = ask;
  const headers = passHeaders(reply.headers, at.responseHeaders);
  const addresses = outwardAddresses(ask, publicUrl);
  for (const name of at.api.urlHeaders ?? []) {
    const value = headers[name];
    if (value !== undefined) headers[name] = rewriteHeader(value, addresses);
  }
  if (reply.length !== undefined) return { ...headers, "content-length": String(reply.length) };
  // Proxies that buffer would hold a stream back.
  return { ...headers, "cache-control": "no-cache", "x-accel-buffering": "no" };
}

/** Whether a reply says that it is JSON. */
export function isJson(headers: Readonly<Record<string, string>>): boolean {
  return /^application\/(?:[\w.-]+\+)?json\b/i.test(headers["content-type"] ?? "");
}

function changesOf(change: ModelChange | undefined): BodyChanges {
  if (change === undefined) return {};
  const { name, prefix, member } = change.named;
  const { vendorModel } = change;
  if (name === vendorModel) return {};
  if (member === undefined) return { model: { from: name, to: vendorModel } };
  return { texts: new Map([[member, `${prefix}${vendorModel}`]]) };
}

/** The path with the vendor's name of the model: it stands there once, as one run of segments. */
function pathOf(path: string, change: ModelChange | undefined): string {
  if (change === undefined || change.named.member !== undefined) return path;
  const { name } = change.named;
  const { vendorModel } = change;
  if (name === vendorModel) return path;
  const start = path.indexOf(`/${name}`) + 1;
  return path.slice(0, start) + vendorModel + path.slice(start + name.length);
}
