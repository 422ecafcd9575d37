/** How vendors are reached in their own form: over HTTP, with the operator's credential and nobody else's. */
import type { VendorConfig } from "../config/config.ts";
import { nativeWaitMs } from "../config/limits.ts";
import type { CancelSignal } from "../core/cancel-signal.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { createHttpClient, type HttpClient } from "../http/client.ts";
import type { NativeHeadersFor } from "./native.ts";
import type { VendorReply } from "./vendor.ts";

/** What {@link createNativeTransport} needs to know of a vendor. */
interface NativeTransportOptions {
  /** The headers that carry the credential. */
  readonly credential: Readonly<Record<string, string>>;
  readonly bases: readonly [NativeBase, ...NativeBase[]];
}

/** Opens connections of their own to a vendor's addresses. */
export function createNativeTransport(
  { timeouts }: Pick<VendorConfig, "timeouts">,
  { credential, bases }: NativeTransportOptions,
): NativeTransport {
  const firstByteMs = Math.max(timeouts.firstByteMs, nativeWaitMs);
  const open = bases.map(({ name, url }) => {
    const { origin, pathname } = new URL(url);
    const usual = createHttpClient(origin, timeouts);
    const patient = createHttpClient(origin, { ...timeouts, firstByteMs });
    return [name, { usual, patient, path: pathname.replace(/\/+$/, "") }] as const;
  });
  const clients = new Map(open);
  const origins = new Set(bases.map(({ url }) => new URL(url).origin));
  return {
    bases,
    headersFor: (url) => (origins.has(URL.parse(url)?.origin ?? "") ? credential : {}),
    send(request) {
      const at = clients.get(request.base);
      if (at === undefined) throw new TypeError(`the vendor has no address ${request.base}`);
      return sendTo(request.isPatient ? at.patient : at.usual, at.path, { request, credential });
    },
    async close() {
      const all = open.flatMap(([, { usual, patient }]) => [usual.close(), patient.close()]);
      await Promise.all(all);
    },
  };
}

function sendTo(
  client: HttpClient,
  path: string,
  {
    request,
    credential,
  }: { readonly request: NativeSend; readonly credential: Readonly<Record<string, string>> },
) {
  const { method, target, headers, body, signal } = request;
  return client.send({
    method,
    path: `${path}${target}`,
    // What is decoded on the way cannot be passed on byte for byte.
    headers: { accept: "*/*", ...headers, "accept-encoding": "identity", ...credential },
    body,
    signal,
  });
}

/** The address without what its paths begin with anyway: clients say `/v1beta/models`. */
export function nativeBaseUrl(
  { baseUrl }: Pick<VendorConfig, "baseUrl">,
  ...versions: readonly string[]
): string {
  const url = baseUrl.replace(/\/+$/, "");
  const version = versions.find((each) => url.endsWith(each));
  return version === undefined ? url : url.slice(0, -version.length);
}

/* How a vendor is reached in its own form. */

/** Reaches a vendor in its own form. */
export interface NativeTransport {
  /** Its addresses; the first is the usual one. Fixed by the configuration, never by a request. */
  readonly bases: readonly [NativeBase, ...NativeBase[]];
  /** What it wants to see with its own files. */
  readonly headersFor: NativeHeadersFor;
  /** Sends a request, with the operator's credential. Follows no redirect. @throws HttpFailure */
  send(request: NativeSend): Promise<VendorReply>;
  close(): Promise<void>;
}

/** One address of a vendor, and where below the prefix it is served. */
interface NativeBase {
  /** For `target` of a route. */
  readonly name: string;
  /** Without a trailing slash, such as `https://api.replicate.com`. */
  readonly url: string;
  /** Empty, or a path such as `/queue`. */
  readonly below: string;
}

/** A request to a vendor. */
export interface NativeSend {
  /** The name of the address. */
  readonly base: string;
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Path and query, with a leading slash. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  /** In pieces. */
  readonly body: readonly Buffer[];
  /** Whether it may take longer than the timeouts are for text: its client waits for the work to be done. */
  readonly isPatient?: boolean;
  readonly signal: CancelSignal;
}

/* Numbers in vendors' own requests: some vendors take texts for them, and what decides about money must not be missed. */

/**
 * A number as the vendor may understand it: `8`, `"8"`, `"1_000"`, `" 8 "`; with a unit, `"8s"`.
 *
 * @returns `undefined`: it is not there, or the vendor takes its own default
 * @throws GatewayError INVALID_REQUEST where it is something else
 */
export function numberSaid(value: unknown, name: string, unit = ""): number | undefined {
  if (value === undefined || value === null) return undefined;
  const number = typeof value === "number" ? value : textSaid(value, unit);
  if (number !== undefined && number >= 0 && number <= numberMax) return number;
  throw wrongNumber(name);
}

/** No vendor takes more of anything. */
export const numberMax = 2 ** 31 - 1;

/** What is said of a number that is none. */
export function wrongNumber(name: string, least = 0): GatewayError {
  const text = `"${name}" must be a number from ${least} to ${numberMax}`;
  return new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: name });
}

function textSaid(value: unknown, unit: string): number | undefined {
  const text = typeof value === "string" ? value.trim().replaceAll("_", "") : "";
  const [, digits, written = ""] = /^\+?(\d{1,12}(?:\.\d{1,12})?) ?([a-z]*)$/.exec(text) ?? [];
  return digits !== undefined && (written === "" || written === unit) ? Number(digits) : undefined;
}
