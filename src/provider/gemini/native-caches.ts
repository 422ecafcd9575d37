/**
 * Only Gemini: its prompt caches (`cachedContents`), which it bills by their tokens and by the
 * hour.
 */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { ModelConfig } from "../../config/config.ts";
import { pricedUnits } from "../../config/price.ts";
import { invalid } from "../../core/validation.ts";
import { FeatureUse } from "../../dialect/features/billed-features.ts";
import { checkGeminiTools } from "../../dialect/gemini/guard.ts";
import { protoCountAt, recordAt, textAt } from "../../wire/json/value.ts";
import type {
  NativeCacheFigures,
  NativeCacheLife,
  NativeCaches,
  NativeRequest,
  NativeRoute,
} from "../native.ts";
import { checkAudio } from "./native-files.ts";

const collection = "/v1(?:beta)?/cachedContents";
const cachePath = new RegExp(`^${collection}/(?<id>[\\w-]{1,200})$`);
const cacheName = /^cachedContents\/[\w-]{1,200}$/;

const cacheOf = ({ groups }: NativeRequest): string => `cachedContents/${groups["id"] ?? ""}`;

/** The most caches of a page; Google's own limit. */
const pageMax = 1_000;

/** The routes of caches. Google's list of all caches belongs to the operator. */
export const geminiCacheRoutes: readonly NativeRoute[] = [
  {
    kind: "cache",
    method: "POST",
    path: new RegExp(`^${collection}$`),
    model: { in: "body", members: ["model"], prefix: "models/" },
  },
  {
    kind: "cacheList",
    method: "GET",
    path: new RegExp(`^${collection}$`),
    page: readPage,
    body(caches, last) {
      const next = last?.slice("cachedContents/".length);
      const token = next === undefined ? "" : `,"nextPageToken":${JSON.stringify(next)}`;
      return `{"cachedContents":[${caches.join(",")}]${token}}`;
    },
  },
  { kind: "pass", method: "GET", path: cachePath, ownedName: cacheOf },
  { kind: "cache", method: "PATCH", path: cachePath, ownedName: cacheOf },
  { kind: "pass", method: "DELETE", path: cachePath, ownedName: cacheOf, isRemoval: true },
];

function readPage({ query }: NativeRequest) {
  const size = Number(query.get("pageSize") ?? "");
  const token = query.get("pageToken") ?? "";
  if (!Number.isInteger(size) || size < 0) {
    throw invalid("pageSize", '"pageSize" must be a whole number from 0 on');
  }
  if (!/^[\w-]{0,200}$/.test(token)) {
    throw invalid("pageToken", '"pageToken": take it from the page before');
  }
  const after = token === "" ? undefined : `cachedContents/${token}`;
  return { limit: Math.min(size || 50, pageMax), after };
}

/** The life that Google gives a cache if a request names none. */
const lifeMsDefault = 60 * 60 * 1_000;

export const geminiCaches: NativeCaches = {
  types: [ModelType.TEXT],
  featuresOf,
  lifeOf,
  path: (name) => `/v1beta/${name}`,
  nameOf(json) {
    const name = textAt(json, "name");
    return cacheName.test(name) ? name : undefined;
  },
  figuresOf(json): NativeCacheFigures | undefined {
    const counts = recordAt(json, "usageMetadata");
    const tokens = counts && protoCountAt(counts, "totalTokenCount");
    const createMs = timeAt(json, "createTime");
    const expireMs = timeAt(json, "expireTime");
    if (tokens === undefined || createMs === undefined || expireMs === undefined) return undefined;
    return { tokens, createMs, expireMs };
  },
};

function timeAt(json: JsonObject, name: string): number | undefined {
  return readTime(textAt(json, name));
}

/** Reads a time of RFC 3339. Digits beyond milliseconds are cut off. */
function readTime(text: string): number | undefined {
  if (!/^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)$/.test(text)) {
    return undefined;
  }
  const ms = Date.parse(text.replace(/(\.\d{3})\d+/, "$1"));
  return Number.isNaN(ms) ? undefined : ms;
}

/**
 * Refuses tools that Google runs: calls that use the cache would run them without a request for
 * them.
 */
function featuresOf(request: NativeRequest, model: ModelConfig, nowMs: number) {
  const tools = new FeatureUse({ hasPrice: () => true });
  checkGeminiTools(request.member("tools"), tools);
  if (tools.features !== undefined) {
    const text =
      '"tools" of a cache may have functions only: send tools that the vendor bills in requests without the cache';
    throw invalid("tools", text);
  }
  const use = new FeatureUse({ hasPrice: pricedUnits(model, nowMs) });
  checkAudio(request, use);
  return use.features;
}

/** @throws GatewayError INVALID_REQUEST */
function lifeOf(request: NativeRequest, isNew: boolean): NativeCacheLife {
  const ttl = request.member("ttl") ?? undefined;
  const until = request.member("expireTime", "expire_time") ?? undefined;
  if (ttl !== undefined && until !== undefined) {
    throw invalid("ttl", 'Send "ttl" or "expireTime", not both');
  }
  if (until !== undefined) return { expireMs: readExpireTime(until) };
  if (ttl !== undefined) return { ttlMs: readTtl(ttl) };
  if (isNew) return { ttlMs: lifeMsDefault };
  throw invalid("ttl", 'Send "ttl" or "expireTime": nothing else of a cache can be changed');
}

function readExpireTime(value: JsonValue): number {
  const ms = typeof value === "string" ? readTime(value) : undefined;
  if (ms !== undefined) return ms;
  throw invalid("expireTime", '"expireTime" must be a time such as "2027-01-31T12:00:00Z"');
}

function readTtl(value: JsonValue): number {
  const text = typeof value === "string" ? value : "";
  const [, seconds] = /^(\d{1,12}(?:\.\d{1,9})?)s$/.exec(text) ?? [];
  if (seconds !== undefined) return Number(seconds) * 1_000;
  throw invalid("ttl", '"ttl" must be a number of seconds such as "3600s"');
}

/**
 * Google's refusal of a cache that has expired or was deleted. It comes as a 403, as a wrong
 * credential does.
 */
export function isMissingCache(status: number, body: Buffer): boolean {
  return (status === 403 || status === 404) && body.includes("CachedContent not found");
}
