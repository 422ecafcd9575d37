/**
 * Downloads a vendor's result. The address comes from a reply and is not trusted: it, and each
 * redirect, must be on the public internet, unless it is the vendor's configured origin.
 */
import {
  resultBytesMax,
  resultFetchMs,
  resultHeadMs,
  resultIdleMs,
  resultRedirectsMax,
} from "../core/limits.ts";
import { limitTime } from "../core/async.ts";
import { createHttpClient } from "../http/client.ts";
import { HttpFailure } from "../http/failure.ts";
import { GuardFailure } from "../http/guard-failure.ts";
import type { GuardedClient } from "../http/guarded-client.ts";
import { ResultFailure, type ResultSource } from "./result.ts";
import { tooLarge } from "./spool.ts";

/** Limits of a download's time and size. */
export interface DownloadLimits {
  /** Maximum time until the head of each reply. Default `resultHeadMs`. */
  readonly headMs?: number;
  /** Maximum time between two reads. Default `resultIdleMs`. */
  readonly idleMs?: number;
  /** Maximum total time. Default `resultFetchMs`. */
  readonly totalMs?: number;
  /** Maximum size of the file. Default `resultBytesMax`. */
  readonly bytesMax?: number;
}

/** A file at an address. */
type RemoteSource = Extract<ResultSource, { readonly url: string }>;

/** Options of {@link download}. */
interface DownloadOptions {
  readonly client: GuardedClient;
  readonly limits?: DownloadLimits;
  readonly signal?: AbortSignal | undefined;
  /** Receives the file as it arrives; the next piece waits for its promise. */
  readonly sink: (bytes: Uint8Array) => Promise<void>;
}

/** The result of one request: a file that was written to the sink, or a redirect. */
type Step = { readonly contentType: string | undefined } | { readonly next: URL };

/** One request of a download. */
interface Ask extends DownloadOptions {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly limits: Required<DownloadLimits>;
  readonly signal: AbortSignal;
}

/**
 * Downloads a file.
 *
 * @returns the content type that the reply declares
 * @throws ResultFailure; errors of the sink unchanged
 */
export async function download(
  source: RemoteSource,
  options: DownloadOptions,
): Promise<string | undefined> {
  const limits = {
    headMs: resultHeadMs,
    idleMs: resultIdleMs,
    totalMs: resultFetchMs,
    bytesMax: resultBytesMax,
    ...options.limits,
  };
  const first = URL.parse(source.url);
  if (first === null) throw new ResultFailure("refused", "no address", { isFinal: true });
  const vendorOrigin = URL.parse(source.vendorUrl ?? "")?.origin;
  using total = limitTime(limits.totalMs, options.signal ? [options.signal] : []);
  const { signal } = total;
  const { redirectHosts } = source;
  const redirectsMax = redirectHosts === undefined ? resultRedirectsMax : 1;
  let url = first;
  for (let asked = 0; asked <= redirectsMax; asked++) {
    const headers = url.origin === first.origin ? (source.headers ?? {}) : {};
    const ask = { ...options, limits, signal, url, headers };
    const step = await (url.origin === vendorOrigin ? askVendor(ask) : askGuarded(ask));
    if ("contentType" in step) return step.contentType;
    url = step.next;
    if (url.origin !== first.origin && !isAmong(url, redirectHosts)) {
      const told = `${first.origin} redirects to ${url.host}, which does not belong to its vendor`;
      throw new ResultFailure("refused", told, { isFinal: true });
    }
  }
  throw new ResultFailure("refused", `more than ${redirectsMax} redirects`);
}

/** Whether a host is allowed; all hosts are allowed without a list. */
function isAmong({ hostname }: URL, hosts: readonly string[] | undefined): boolean {
  const isIt = (host: string): boolean =>
    host.startsWith(".") ? hostname.endsWith(host) : hostname === host;
  return hosts === undefined || hosts.some(isIt);
}

/** Requests an address on the public internet. */
async function askGuarded({ client, url, headers, limits, signal, sink }: Ask): Promise<Step> {
  const idle = new AbortController();
  let step: Step | undefined;
  let failure: unknown;
  let timer: NodeJS.Timeout | undefined;
  const { outcome } = await client.send({
    method: "GET",
    url: url.href,
    headers,
    headMs: limits.headMs,
    bodyMs: limits.totalMs,
    bodyBytesMax: limits.bytesMax,
    signal: AbortSignal.any([signal, idle.signal]),
    wants: (reply) => {
      try {
        step = readHead(url, reply, limits);
      } catch (error) {
        failure = error;
      }
      timer = setTimeout(() => idle.abort(idleTimeout()), limits.idleMs);
      return step !== undefined && "contentType" in step;
    },
    sink: async (bytes) => {
      await sink(bytes).catch((error: unknown) => {
        failure = error;
        throw error;
      });
      timer?.refresh();
    },
  });
  clearTimeout(timer);
  if (failure !== undefined) throw failure;
  if (outcome instanceof GuardFailure) throw guardFailure(outcome, url, [signal, idle.signal]);
  if (step === undefined) throw new Error("a reply without a head");
  return step;
}

/** Requests a URL of the vendor's origin, which the operator has configured. */
async function askVendor({ url, headers, limits, signal, sink }: Ask): Promise<Step> {
  const { headMs, idleMs } = limits;
  const client = createHttpClient(url.origin, { connectMs: headMs, firstByteMs: headMs, idleMs });
  try {
    const path = `${url.pathname}${url.search}`;
    const reply = await client.send({ method: "GET", path, headers, body: [], signal });
    const step = readHead(url, reply, limits);
    let left = limits.bytesMax;
    if ("next" in step) return step;
    while (await reply.body.ready()) {
      for (const bytes of reply.body.take()) {
        left -= bytes.length;
        if (left < 0) throw tooLarge(limits.bytesMax);
        await sink(bytes);
      }
    }
    return step;
  } catch (error) {
    throw error instanceof HttpFailure ? vendorFailure(error, url, signal) : error;
  } finally {
    await client.close();
  }
}

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * Reads the head of a reply.
 *
 * @throws ResultFailure if it is neither a file nor a redirect
 */
function readHead(
  url: URL,
  { status, headers }: { readonly status: number; readonly headers: Headers },
  { bytesMax }: Required<DownloadLimits>,
): Step {
  const one = (name: string): string | undefined => [headers[name]].flat()[0];
  const location = one("location");
  if ([301, 302, 303, 307, 308].includes(status) && location !== undefined) {
    const next = URL.parse(location, url.href);
    if (next !== null) return { next };
  }
  if (status !== 200) {
    const isFinal = status >= 400 && status < 500 && ![408, 425, 429].includes(status);
    throw new ResultFailure("refused", `${url.origin} answered ${status}`, { isFinal });
  }
  const encoding = one("content-encoding") ?? "identity";
  if (encoding !== "identity") {
    throw new ResultFailure(
      "refused",
      `${url.origin} answered with content-encoding ${encoding}, which was not requested`,
    );
  }
  if (Number(one("content-length") ?? 0) > bytesMax) throw tooLarge(bytesMax);
  return { contentType: one("content-type") };
}

function idleTimeout(): DOMException {
  return new DOMException("no data arrived in time", "TimeoutError");
}

/** Whether a deadline aborted the request, and not its caller. */
function isTimeout(signals: readonly AbortSignal[]): boolean {
  const ended = signals.find(({ aborted }) => aborted);
  return ended?.reason instanceof Error && ended.reason.name === "TimeoutError";
}

function guardFailure(
  failure: GuardFailure,
  url: URL,
  signals: readonly AbortSignal[],
): ResultFailure {
  const { kind, message } = failure;
  const told = `${url.origin}: ${message}`;
  const options = { cause: failure };
  if (kind === "timeout" || (kind === "aborted" && isTimeout(signals)))
    return new ResultFailure("timeout", told, options);
  if (kind === "aborted") return new ResultFailure("aborted", told, options);
  if (kind === "too_large")
    return new ResultFailure("too_large", told, { ...options, isFinal: true });
  if (kind === "blocked_address")
    return new ResultFailure("blocked", told, { ...options, isFinal: true });
  return new ResultFailure("unreachable", told, options);
}

function vendorFailure(failure: HttpFailure, url: URL, signal: AbortSignal): ResultFailure {
  const told = `${url.origin}: ${failure.message}`;
  const options = { cause: failure };
  const isLate = failure.kind === "timeout" || failure.kind === "connect_timeout";
  if (isLate || isTimeout([signal])) return new ResultFailure("timeout", told, options);
  if (failure.kind === "aborted") return new ResultFailure("aborted", told, options);
  return new ResultFailure("unreachable", told, options);
}
