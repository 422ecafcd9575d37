/** How vendors are reached in their own form: over HTTP, with the operator's credential and nobody else's. */
import type { VendorConfig } from "../config/config.ts";
import { nativeWaitMs } from "../config/limits.ts";
import { createHttpClient, type HttpClient } from "../http/client.ts";
import type { NativeBase, NativeSend, NativeTransport } from "./native-transport.ts";

/** What {@link createNativeTransport} needs to know of a vendor. */
export interface NativeTransportOptions {
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
