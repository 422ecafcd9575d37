/**
 * Gemini's prompt caches, simulated over real HTTP: strict about requests, with separate caches for
 * each key.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A cache as the vendor keeps it. */
interface KeptCache {
  readonly key: string;
  readonly name: string;
  readonly model: string;
  readonly displayName: string | undefined;
  readonly tokens: number;
  readonly createMs: number;
  expireMs: number;
}

/** A vendor's state of caches. */
export interface CacheState {
  /** By name. */
  readonly caches: Map<string, KeptCache>;
  /** The tokens of the next caches. */
  tokens: number;
  /** Lead of the vendor's clock. */
  aheadMs: number;
}

/**
 * Settings that a test changes at run time. Default: caches of 100,000 tokens, and a correct clock.
 */
export interface CacheVendor extends CacheState {
  readonly origin: string;
  /** `METHOD path`, oldest first. */
  readonly requests: string[];
  /** Violations that reached the vendor. */
  readonly violations: string[];
  /** Breaks the connection instead of the next answers. Default false. */
  isCut: boolean;
  /** Called before an answer is sent, which waits for it. Default: nothing. */
  onAnswer: (() => Promise<void>) | undefined;
  close(): Promise<void>;
}

const created = new Set([
  ...["model", "contents", "systemInstruction", "tools", "toolConfig"],
  ...["ttl", "expireTime", "displayName"],
]);
const changed = new Set(["ttl", "expireTime"]);

/** Starts one. @param keys the operator's */
export async function startCacheVendor(keys: readonly string[]): Promise<CacheVendor> {
  const server = createServer((request, response) => void serve(request, response));
  const vendor: CacheVendor = {
    origin: "",
    caches: new Map(),
    requests: [],
    violations: [],
    tokens: 100_000,
    aheadMs: 0,
    isCut: false,
    onAnswer: undefined,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    response.on("error", () => {});
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const { method = "", url = "", headers } = request;
    vendor.requests.push(`${method} ${url}`);
    const key = String(headers["x-goog-api-key"] ?? "");
    if (!keys.includes(key)) vendor.violations.push(`${method} ${url}: key ${key}`);
    const text = Buffer.concat(pieces).toString();
    const reply = answerAboutCaches({ vendor, key, method, url, text });
    await vendor.onAnswer?.();
    if (vendor.isCut) {
      response.destroy();
      return;
    }
    const [status, body] = reply;
    response
      .writeHead(status, { "content-type": "application/json" })
      .end(JSON.stringify(body, null, 2));
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return Object.assign(vendor, { origin });
}

interface Asked {
  readonly vendor: CacheState;
  readonly key: string;
  readonly method: string;
  readonly url: string;
  readonly text: string;
}

type Answer = readonly [status: number, body: object];

/** Returns the vendor's answer to a request about caches, or to one that uses a cache. */
export function answerAboutCaches(asked: Asked): Answer {
  const { vendor, key, method, url, text } = asked;
  const path = new URL(url, "http://vendor").pathname.replace(/^\/v1\//, "/v1beta/");
  const [, name] = /^\/v1beta\/(cachedContents\/[a-z0-9]+)$/.exec(path) ?? [];
  if (name !== undefined) {
    const found = vendor.caches.get(name);
    if (found === undefined || found.key !== key || found.expireMs <= now(vendor)) return gone;
    if (method === "GET") return [200, described(found)];
    if (method === "DELETE") {
      vendor.caches.delete(name);
      return [200, {}];
    }
    if (method === "PATCH") return change(asked, found);
  }
  if (method === "POST" && path === "/v1beta/cachedContents") return make(asked);
  const [, model] = /^\/v1beta\/(models\/[\w.-]+):generateContent$/.exec(path) ?? [];
  if (method === "POST" && model !== undefined) {
    const { cachedContent } = JSON.parse(text) as { cachedContent?: string };
    const used = vendor.caches.get(cachedContent ?? "");
    if (used === undefined || used.key !== key || used.expireMs <= now(vendor)) return gone;
    if (used.model !== model) return refused("Model used by GenerateContent request differs");
    return [200, generated(used.tokens)];
  }
  return [404, { error: { code: 404, message: "Not found", status: "NOT_FOUND" } }];
}

let count = 0;

function make({ vendor, key, text }: Asked): Answer {
  const json = JSON.parse(text) as Record<string, unknown>;
  const other = Object.keys(json).find((member) => !created.has(member));
  if (other !== undefined) return refused(`Unknown name "${other}"`);
  const { model, displayName, contents } = json;
  if (typeof model !== "string" || !model.startsWith("models/"))
    return refused("model is required");
  if (!Array.isArray(contents)) return refused("contents are required");
  const expireMs = readExpiry(vendor, json) ?? now(vendor) + 3_600_000;
  const name = `cachedContents/c${++count}`;
  const kept: KeptCache = {
    ...{ key, name, model, expireMs, tokens: vendor.tokens, createMs: now(vendor) },
    displayName: displayName as string | undefined,
  };
  vendor.caches.set(name, kept);
  return [200, described(kept)];
}

function change({ vendor, text }: Asked, found: KeptCache): Answer {
  const json = JSON.parse(text) as Record<string, unknown>;
  const other = Object.keys(json).find((member) => !changed.has(member));
  if (other !== undefined) return refused(`"${other}" cannot be updated`);
  const expireMs = readExpiry(vendor, json);
  if (expireMs === undefined) return refused("Nothing to update");
  found.expireMs = expireMs;
  return [200, described(found)];
}

/** One of `ttl` and `expireTime`, in the JSON form of protobuf. */
function readExpiry(vendor: CacheState, { ttl, expireTime }: Record<string, unknown>) {
  if (typeof expireTime === "string") return Date.parse(expireTime);
  if (typeof ttl !== "string") return undefined;
  const [, seconds] = /^(\d+(?:\.\d+)?)s$/.exec(ttl) ?? [];
  return seconds === undefined ? undefined : now(vendor) + Number(seconds) * 1_000;
}

function now({ aheadMs }: CacheState): number {
  return Date.now() + aheadMs;
}

function described({ name, model, displayName, tokens, createMs, expireMs }: KeptCache): object {
  return {
    ...{ name, model, displayName },
    // With microseconds, as Google writes times.
    createTime: new Date(createMs).toISOString().replace("Z", "123Z"),
    updateTime: new Date(createMs).toISOString().replace("Z", "456Z"),
    expireTime: new Date(expireMs).toISOString().replace("Z", "789Z"),
    usageMetadata: { totalTokenCount: tokens },
  };
}

function generated(cached: number): object {
  const content = { role: "model", parts: [{ text: "Hello" }] };
  return {
    candidates: [{ content, finishReason: "STOP", index: 0 }],
    usageMetadata: {
      promptTokenCount: cached + 10,
      cachedContentTokenCount: cached,
      candidatesTokenCount: 20,
      totalTokenCount: cached + 30,
    },
  };
}

function refused(message: string): Answer {
  return [400, { error: { code: 400, message, status: "INVALID_ARGUMENT" } }];
}

/**
 * Google's words for a cache of another project and for a deleted one: those of a refused
 * credential.
 */
const gone: Answer = [
  403,
  {
    error: {
      code: 403,
      message: "CachedContent not found (or permission denied)",
      status: "PERMISSION_DENIED",
    },
  },
];
