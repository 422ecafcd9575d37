/** Checks addresses and credentials of vendors by requests that are free of charge. */
import type { CredentialConfig, VendorConfig } from "../config/config.ts";
import { notRead } from "../config/references.ts";
import { createHttpClient } from "../http/client.ts";
import { HttpFailure } from "../http/failure.ts";
import { isRecord, type JsonRecord, recordsAt, textAt } from "../wire/json/value.ts";
import { errorMember, textMember } from "./http-vendor.ts";
import type { ProbeRequest, Vendor, VendorKind, VendorProbe } from "./vendor.ts";

/**
 * Result of one probe.
 *
 * - `ok`: the vendor accepts the credential.
 * - `refused`: the vendor refuses the credential, or the account there is empty.
 * - `failing`: there is no connection, no reply, or a fault of the vendor.
 * - `unknown`: nothing is known about the credential.
 */
export type ProbeVerdict = "ok" | "refused" | "failing" | "unknown";

/** A probed credential of a vendor. */
export interface ProbeResult {
  readonly vendor: string;
  /** The name of the credential's variable or file. Undefined if the vendor has none. */
  readonly credential: string | undefined;
  readonly verdict: ProbeVerdict;
  /** Undefined without a reply. */
  readonly status: number | undefined;
  readonly latencyMs: number;
  /** The reason in words, without secrets; empty if the verdict is enough. */
  readonly message: string;
  /** Names of the vendor's models. Undefined if it did not list them. */
  readonly models: readonly string[] | undefined;
}

/** The longest list of models: OpenRouter's has about 1 MB. */
const listBytesMax = 16 * 1024 * 1024;

const timeouts = { connectMs: 5_000, firstByteMs: 10_000, idleMs: 5_000, totalMs: 15_000 };

/** Probes every credential of a vendor, all at once, within 15 seconds. Never rejects. */
export async function probeVendor(
  kind: VendorKind,
  config: VendorConfig,
): Promise<readonly ProbeResult[]> {
  const { probe } = kind;
  if (probe === undefined) return [];
  const credentials = config.credentials ?? [];
  const all = credentials.length === 0 ? [undefined] : credentials;
  return Promise.all(all.map((credential) => probeOne(kind, { config, probe, credential })));
}

interface ProbedOne {
  readonly config: VendorConfig;
  readonly probe: VendorProbe;
  readonly credential: CredentialConfig | undefined;
}

async function probeOne(
  kind: VendorKind,
  { config, probe, credential }: ProbedOne,
): Promise<ProbeResult> {
  const head = { vendor: config.name, credential: credential?.name };
  if (credential?.apiKey === notRead) {
    const message = "not sent: the secret is in the database, where only gateways read it";
    return { ...head, ...noReply, verdict: "unknown", message };
  }
  const own = { ...config, apiKey: credential?.apiKey };
  const vendor = kind.create(own);
  const startMs = performance.now();
  try {
    const reply = await sendProbe(probe.request(own));
    const latencyMs = latencySince(startMs);
    return { ...head, latencyMs, ...readReply(reply, { probe, vendor, config }) };
  } catch (error) {
    const message = error instanceof HttpFailure ? error.message : "an unreadable reply";
    return { ...head, ...noReply, verdict: "failing", latencyMs: latencySince(startMs), message };
  } finally {
    await vendor.close();
  }
}

const noReply = { status: undefined, latencyMs: 0, models: undefined } as const;

function latencySince(startMs: number): number {
  return Math.round(performance.now() - startMs);
}

interface Reply {
  readonly status: number;
  readonly body: Buffer;
  readonly isWrong: boolean;
}

async function sendProbe({ url, headers, body, isWrong = false }: ProbeRequest): Promise<Reply> {
  const { origin, pathname, search } = new URL(url);
  const client = createHttpClient(origin, timeouts, headers);
  const accepted = { accept: "application/json", ...headers };
  try {
    const reply = await client.send({
      method: body === undefined ? "GET" : "POST",
      path: pathname + search,
      headers: body === undefined ? accepted : { ...accepted, ...jsonType },
      body: body === undefined ? [] : [Buffer.from(body)],
      signal: AbortSignal.timeout(timeouts.totalMs),
    });
    return { status: reply.status, body: await reply.body.whole(listBytesMax), isWrong };
  } finally {
    await client.close();
  }
}

const jsonType = { "content-type": "application/json" };

function readReply(
  { status, body, isWrong }: Reply,
  { probe, vendor, config }: Omit<ProbedOne, "credential"> & { readonly vendor: Vendor },
) {
  const isSuccess = status >= 200 && status <= 299;
  if (isSuccess) {
    const models = probe.readModels?.(JSON.parse(body.toString("utf8")), config);
    return { status, verdict: "ok", message: "", models } as const;
  }
  const fault = vendor.faultOf?.(status, body);
  const verdict = verdictOf(status, { fault, isWrong });
  return { status, verdict, message: messageOf(status, { verdict, body }), models: undefined };
}

function verdictOf(
  status: number,
  { fault, isWrong }: { readonly fault: string | undefined; readonly isWrong: boolean },
): ProbeVerdict {
  if (fault === "credential" || fault === "money") return "refused";
  if (status === 401 || status === 402 || status === 403) return "refused";
  if (status >= 500) return "failing";
  // A limit of requests is the vendor's answer to a known credential.
  return isWrong || status === 429 ? "ok" : "unknown";
}

function messageOf(
  status: number,
  { verdict, body }: { readonly verdict: ProbeVerdict; readonly body: Buffer },
): string {
  const said = textMember(errorMember(body) ?? {}, "message")
    .replace(/\s+/g, " ")
    .slice(0, 200);
  if (said !== "") return verdict === "ok" ? "" : said;
  return verdict === "unknown" && status === 404 ? "no list of models at this address" : "";
}

/** The names in a list of a reply, such as `data[].id`. Some vendors reply with the list alone. */
export function listedNames(reply: unknown, list: string, member: string): readonly string[] {
  const record: JsonRecord = Array.isArray(reply) ? { [list]: reply } : (asRecord(reply) ?? {});
  return recordsAt(record, list).map((entry) => textAt(entry, member));
}

function asRecord(value: unknown): JsonRecord | undefined {
  return isRecord(value) ? value : undefined;
}
