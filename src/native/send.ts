/**
 * Builds the vendor's request from a native request, and the customer's headers and body from the
 * reply.
 */
import type { KeyRef } from "../core/caller.ts";
import type { NativeSend } from "../provider/native-http.ts";
import { type BodyChanges } from "./body.ts";
import { passHeaders, type NativeContext } from "./context.ts";
import { inwardAddresses, outwardAddresses, type NativeExchange } from "./mount.ts";
import type { NamedModel } from "./models.ts";
import { withoutParams } from "./path.ts";
import { rewriteAddresses, rewriteHeader } from "../wire/json/addresses.ts";

/** Replaces a model's name by the vendor's. */
export interface ModelChange {
  readonly named: NamedModel;
  /** The vendor's name. */
  readonly vendorModel: string;
}

/**
 * The request for the vendor: with its names of model and addresses, without callbacks and unlisted
 * headers.
 */
export function vendorRequest(
  exchange: NativeExchange,
  publicUrl: string,
  change?: ModelChange,
): Omit<NativeSend, "signal"> {
  const { mount, route, request, method } = exchange;
  const { callback, urlHeaders } = mount.api;
  const headers = passHeaders(request.headers, mount.requestHeaders);
  // A part of a generated reply could lack its usage.
  if (method !== "GET") delete headers["range"];
  const addresses = inwardAddresses(exchange, publicUrl);
  for (const name of urlHeaders ?? []) {
    const value = headers[name];
    if (value !== undefined) headers[name] = rewriteHeader(value, addresses);
  }
  const [first] = mount.transport.bases;
  const { base, path } = route.target?.(request) ?? { base: first.name, path: exchange.path };
  const query = withoutParams(exchange.query, callback?.params ?? []);
  const target = `${pathOf(path, change)}${query === "" ? "" : `?${query}`}`;
  // Files are forwarded unread, whatever type they declare.
  const isBytes = route.kind === "pass" && route.model === undefined;
  const body = request.forVendor(
    isBytes ? {} : { ...changesOf(change), without: callback?.members ?? [], addresses },
  );
  return { base, method, target, headers: { ...headers, ...route.headers }, body };
}

/**
 * The customer's form of a complete body: the vendor's addresses become the gateway's, keyless ones
 * become links.
 */
export function customerBody(
  { mount, owner }: { readonly mount: NativeExchange["mount"]; readonly owner: KeyRef },
  body: Buffer,
  { publicUrl, links }: Pick<NativeContext, "publicUrl" | "links">,
): Buffer {
  const linked = links.replace(body, { mount, owner, publicUrl: publicUrl() });
  return rewriteAddresses(linked, outwardAddresses({ mount }, publicUrl()));
}

/**
 * The customer's headers of a reply.
 *
 * @param reply `length` of a complete body in bytes; undefined if it is streamed
 */
export function customerHeaders(
  exchange: Pick<NativeExchange, "mount">,
  publicUrl: string,
  reply: {
    readonly headers: Readonly<Record<string, string>>;
    readonly length: number | undefined;
  },
): Record<string, string> {
  const { mount } = exchange;
  const headers = passHeaders(reply.headers, mount.responseHeaders);
  const addresses = outwardAddresses(exchange, publicUrl);
  for (const name of mount.api.urlHeaders ?? []) {
    const value = headers[name];
    if (value !== undefined) headers[name] = rewriteHeader(value, addresses);
  }
  if (reply.length !== undefined) return { ...headers, "content-length": String(reply.length) };
  // Buffering proxies would delay a stream.
  return { ...headers, "cache-control": "no-cache", "x-accel-buffering": "no" };
}

/** Whether a reply declares JSON. */
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

/** The path with the vendor's name of the model, which it has once, as consecutive segments. */
function pathOf(path: string, change: ModelChange | undefined): string {
  if (change === undefined || change.named.member !== undefined) return path;
  const { name } = change.named;
  const { vendorModel } = change;
  if (name === vendorModel) return path;
  const start = path.indexOf(`/${name}`) + 1;
  return path.slice(0, start) + vendorModel + path.slice(start + name.length);
}
