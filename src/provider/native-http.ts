/** HTTP connections to native vendor APIs, with the operator's credential only. */
import type { VendorConfig } from "../config/config.ts";
import { nativeWaitMs } from "../core/limits.ts";
import type { CancelSignal } from "../core/cancel-signal.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { createHttpClient, type HttpClient } from "../http/client.ts";
import type { NativeHeadersFor } from "./native.ts";
import type { VendorReply } from "./reply.ts";

/** Options of {@link createNativeTransport}. */
interface NativeTransportOptions {
  /** The headers that carry the credential. */
  readonly credential: Readonly<Record<string, string>>;
  readonly bases: readonly [NativeBase, ...NativeBase[]];
}

/** Opens separate connections to a vendor's addresses. */
export function createNativeTransport(
  { timeouts }: Pick<VendorConfig, "timeouts">,
  { credential, bases }: NativeTransportOptions,
): NativeTransport {
  const firstByteMs = Math.max(timeouts.firstByteMs, nativeWaitMs);
  const open = bases.map(({ name, url }) => {
    const { origin, pathname } = new URL(url);
    const defaultClient = createHttpClient(origin, timeouts, credential);
    const patient = createHttpClient(origin, { ...timeouts, firstByteMs }, credential);
    return [name, { usual: defaultClient, patient, path: pathname.replace(/\/+$/, "") }] as const;
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
    // A compressed reply could not be relayed byte for byte.
    headers: { accept: "*/*", ...headers, "accept-encoding": "identity", ...credential },
    body,
    signal,
  });
}

/** The base URL without the version that native paths begin with: clients send `/v1beta/models`. */
export function nativeBaseUrl(
  { baseUrl }: Pick<VendorConfig, "baseUrl">,
  ...versions: readonly string[]
): string {
  const url = baseUrl.replace(/\/+$/, "");
  const version = versions.find((each) => url.endsWith(each));
  return version === undefined ? url : url.slice(0, -version.length);
}

/** Sends requests to a native vendor API. */
export interface NativeTransport {
  /**
   * The API's addresses; the first is the default. Fixed by the configuration, never by a request.
   */
  readonly bases: readonly [NativeBase, ...NativeBase[]];
  /** Headers that the vendor requires for its own files. */
  readonly headersFor: NativeHeadersFor;
  /**
   * Sends a request with the operator's credential. Does not follow redirects. @throws HttpFailure
   */
  send(request: NativeSend): Promise<VendorReply>;
  close(): Promise<void>;
}

/** An address of the API, and its path below the prefix. */
interface NativeBase {
  /** Named by `target` of a route. */
  readonly name: string;
  /** Without a trailing slash, such as `https://api.replicate.com`. */
  readonly url: string;
  /** Empty, or a path such as `/queue`. */
  readonly below: string;
}

/** A request to the vendor. */
export interface NativeSend {
  /** The name of the address. */
  readonly base: string;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path and query, with a leading slash. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Pieces, in order. */
  readonly body: readonly Buffer[];
  /** Ignore the text timeouts, because the client waits for the work to be done. */
  readonly isPatient?: boolean;
  readonly signal: CancelSignal;
}

/**
 * Reads a number in any spelling that a vendor accepts: `8`, `"8"`, `"1_000"`, `" 8 "`, or with a
 * unit `"8s"`. Some vendors accept strings, and a figure that decides the price must not be missed.
 *
 * @returns `undefined` if it is absent, so that the vendor's default applies
 * @throws GatewayError INVALID_REQUEST if it is anything else
 */
export function readNumber(value: unknown, name: string, unit = ""): number | undefined {
  if (value === undefined || value === null) return undefined;
  const number = typeof value === "number" ? value : textSaid(value, unit);
  if (number !== undefined && number >= 0 && number <= numberMax) return number;
  throw invalidNumber(name);
}

/** No vendor accepts larger numbers. */
export const numberMax = 2 ** 31 - 1;

/** The error for an invalid number. */
export function invalidNumber(name: string, least = 0): GatewayError {
  const text = `"${name}" must be a number from ${least} to ${numberMax}`;
  return new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: name });
}

function textSaid(value: unknown, unit: string): number | undefined {
  const text = typeof value === "string" ? value.trim().replaceAll("_", "") : "";
  const [, digits, written = ""] = /^\+?(\d{1,12}(?:\.\d{1,12})?) ?([a-z]*)$/.exec(text) ?? [];
  return digits !== undefined && (written === "" || written === unit) ? Number(digits) : undefined;
}
