/**
 * Mutations of requests as bad clients send them: of the JSON, the bytes, the head, the framing,
 * and the delivery.
 */
import { gzipSync, brotliCompressSync } from "node:zlib";
import { Chance } from "./random.ts";
import { bytesOf, headerOf, type Json, setHeader, type Shot, writeJson } from "./shot.ts";

/** One change; the seed decides where and what. */
export interface Mutation {
  readonly kind: MutationKind;
  readonly seed: number;
}

type MutationKind = "json" | "text" | "bytes" | "head" | "encoding" | "target" | "sending" | "raw";

/** In the order in which they are applied. */
const kinds: readonly MutationKind[] = [
  "json",
  "text",
  "bytes",
  "encoding",
  "head",
  "target",
  "sending",
  "raw",
];

/** Chooses what to change: mostly the body, if there is one. */
export function chooseMutations(chance: Chance, hasJson: boolean): Mutation[] {
  if (chance.is(0.12)) return [];
  const count = 1 + chance.below(chance.is(0.3) ? 5 : 2);
  const choices: readonly MutationKind[] = [
    ...Array.from({ length: hasJson ? 12 : 1 }, () => "json" as const),
    ...([
      "text",
      "bytes",
      "bytes",
      "head",
      "head",
      "encoding",
      "target",
      "sending",
      "raw",
    ] as const),
  ];
  return Array.from({ length: count }, () => ({ kind: chance.of(choices), seed: chance.seed() }));
}

/** Applies them; the order of the list counts within a kind only. */
export function mutate(shot: Shot, mutations: readonly Mutation[]): void {
  for (const kind of kinds) {
    if (kind === "text") writeTexts(shot, mutations);
    for (const mutation of mutations) {
      if (mutation.kind === kind && kind !== "text") change[kind](shot, new Chance(mutation.seed));
    }
  }
}

/**
 * The body becomes text here; members are doubled in the text, since a tree cannot have them twice.
 */
function writeTexts(shot: Shot, mutations: readonly Mutation[]): void {
  const { json } = shot;
  writeJson(shot);
  for (const { kind, seed } of mutations) {
    if (kind !== "text" || typeof json !== "object" || json === null) continue;
    const chance = new Chance(seed);
    const text = shot.body.toString();
    const names = [...text.matchAll(/"(\w{1,40})":/g)];
    if (names.length === 0) continue;
    const { index, 0: found } = chance.of(names);
    const value = JSON.stringify(chance.of(oddValues));
    const doubled = chance.is(0.5)
      ? found
      : found.replace(/"(\w)/, (_, letter: string) => `"\\u00${letter.charCodeAt(0).toString(16)}`);
    shot.body = Buffer.from(`${text.slice(0, index)}${doubled}${value},${text.slice(index)}`);
  }
}

const change: Readonly<
  Record<Exclude<MutationKind, "text">, (shot: Shot, chance: Chance) => void>
> = {
  json(shot, chance) {
    if (shot.json === undefined) return;
    const left = { at: chance.below(countPlaces(shot.json)) };
    shot.json = changeAt(shot.json, left, chance);
  },
  bytes(shot, chance) {
    const { body } = shot;
    const at = chance.below(body.length + 1);
    const some = (): Buffer =>
      chance.is(0.3) ? chance.bytes(1 + chance.below(8)) : chance.of(oddBytes);
    const end = Math.min(body.length, at + 1 + chance.below(6));
    const parts = {
      flip: () => [body.subarray(0, at), Buffer.from([chance.below(256)]), body.subarray(at + 1)],
      insert: () => [body.subarray(0, at), some(), body.subarray(at)],
      remove: () => [body.subarray(0, at), body.subarray(end)],
      repeat: () => [body.subarray(0, end), body.subarray(at)],
      truncate: () => [body.subarray(0, at)],
      replace: () => [some()],
      grow: () => [body, Buffer.alloc(chance.below(300_000), " ")],
    };
    const names = Object.keys(parts) as (keyof typeof parts)[];
    shot.body = Buffer.concat(parts[chance.of(names)]());
  },
  encoding(shot, chance) {
    const name = chance.of(["gzip", "br", "deflate", "identity", "zstd", "", "gzip, gzip", "x"]);
    setHeader(
      shot,
      chance.of(["content-encoding", "connect-content-encoding", "grpc-encoding"]),
      name,
    );
    if (chance.is(0.5)) shot.body = gzipSync(shot.body);
    else if (chance.is(0.3)) shot.body = brotliCompressSync(shot.body);
  },
  head(shot, chance) {
    const [name, values] = chance.of(oddHeaders);
    const value = chance.of(values);
    if (chance.is(0.3)) shot.headers.push([name, value]);
    else setHeader(shot, name, value);
    // A WebSocket request whose head has a body or another version may be accepted or refused.
    const isOdd = shot.isWebSocket && /^(?:content-|upgrade)/.test(name);
    // A length beyond the body is an unfinished request, which the gateway awaits for minutes.
    if (isOdd || framingHeaders.has(name)) shot.isFramed = false;
  },
  target(shot, chance) {
    if (chance.is(0.3)) shot.method = chance.of(oddMethods);
    const at = 1 + chance.below(shot.target.length);
    const odd = chance.of(oddPaths);
    shot.target = chance.is(0.3)
      ? odd
      : `${shot.target.slice(0, at)}${odd}${shot.target.slice(at)}`;
    if (shot.method === "CONNECT") shot.isFramed = false;
  },
  sending(shot, chance) {
    shot.pieces = chance.of([1, 1, 2, 3, 17]);
    const plan = chance.below(6);
    if (plan === 0) shot.framing = "chunked";
    if (plan === 1) shot.framing = chance.of(["wrong-length", "bad-chunks", "none"] as const);
    if (plan === 2) shot.cutAt = chance.below(1_000) / 1_000;
    if (plan === 3) shot.readMax = chance.below(chance.is(0.5) ? 40 : 4_000);
    shot.then = chance.of(["read", "read", "half-close", "reset"] as const);
    if (shot.cutAt !== undefined && shot.then === "read") shot.then = "half-close";
    if (plan === 1) shot.isFramed = false;
  },
  raw(shot, chance) {
    if (shot.isHttp2) return;
    const bytes = Buffer.from(bytesOf(shot));
    const head = Math.max(1, bytes.indexOf("\r\n\r\n"));
    for (let count = 1 + chance.below(4); count > 0; count--) {
      bytes[chance.below(head)] = chance.is(0.5) ? chance.below(256) : chance.of(oddOctets);
    }
    shot.raw = bytes;
    shot.isFramed = false;
  },
};

function countPlaces(value: Json): number {
  if (typeof value !== "object" || value === null) return 1;
  return Object.values(value).reduce<number>((sum, inner) => sum + countPlaces(inner), 1);
}

/** The value with the place that is `left.at` places further on changed. */
function changeAt(value: Json, left: { at: number }, chance: Chance): Json {
  if (left.at-- === 0) return changed(value, chance);
  if (Array.isArray(value)) {
    return value.flatMap((item): Json[] => {
      const isHere = left.at === 0;
      if (isHere && chance.is(0.25)) return left.at--, chance.is(0.5) ? [] : [item, item];
      return [changeAt(item, left, chance)];
    });
  }
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).flatMap(([name, item]): [string, Json][] => {
    const isHere = left.at === 0;
    if (isHere && chance.is(0.25))
      return left.at--, chance.is(0.6) ? [] : [[chance.of(oddNames), item]];
    return [[name, changeAt(item, left, chance)]];
  });
  return Object.fromEntries(entries);
}

function changed(value: Json, chance: Chance): Json {
  const odd = chance.of(oddValues);
  if (chance.is(0.6)) return odd;
  if (chance.is(0.2)) return [value];
  if (chance.is(0.1)) return deep(chance.of(depths), value);
  if (typeof value === "string")
    return chance.is(0.1) ? "x".repeat(chance.of([300, 70_000])) : `${value}${JSON.stringify(odd)}`;
  if (typeof value === "number")
    return chance.of([-value, value * 1e9, value + 0.5, String(value)]);
  if (Array.isArray(value)) return [...value, odd];
  if (typeof value === "object" && value !== null) return { ...value, [chance.of(oddNames)]: odd };
  return odd;
}

/**
 * Levels around the limit of the gateway. Five changes one in the other must not exceed the stack
 * of the fuzzer itself.
 */
const depths = [10, 63, 64, 65, 66, 500];

function deep(levels: number, value: Json): Json {
  let inner = value;
  for (let level = 0; level < levels; level++) inner = level % 2 === 0 ? [inner] : { x: inner };
  return inner;
}

const oddNames = [
  "__proto__",
  "constructor",
  "toString",
  "x\r\ninjected: yes",
  "süß\u0000",
  "\ud83d\ude00",
  "y".repeat(3_000),
  "",
  "type",
  "id",
  "content",
  "model",
  "stream",
];

const oddValues: readonly Json[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  1e308,
  2 ** 53,
  2 ** 63,
  -(2 ** 31),
  "",
  "a\r\nb: c",
  "\u0000\u2028",
  "\ud800",
  "uas1.",
  "uas1.bnVsbA",
  "data:image/png;base64,",
  "data:,",
  "http://127.0.0.1:1/x",
  "9".repeat(400),
  "1e400",
  "[object Object]",
  "__proto__",
  [],
  {},
  [[]],
  [null],
  [{}],
  ["x"],
  { type: "text" },
  { type: "constructor" },
  { "": { "": [] } },
];

const oddBytes: readonly Buffer[] = [
  Buffer.from([0]),
  Buffer.from([0xc3, 0x28]),
  Buffer.from([0xed, 0xa0, 0x80]),
  Buffer.from([0xff, 0xfe]),
  Buffer.from("\ufeff"),
  Buffer.from("]".repeat(70)),
  Buffer.from("[".repeat(70)),
  Buffer.from("\\ud800"),
  Buffer.from("1e999"),
  Buffer.from('"'),
  Buffer.from("{}"),
  Buffer.from("null"),
];

const oddOctets = [0, 9, 10, 13, 32, 58, 127, 128, 255] as const;

const oddMethods = [
  "GET",
  "PUT",
  "DELETE",
  "HEAD",
  "OPTIONS",
  "PATCH",
  "TRACE",
  "CONNECT",
  "QUERY",
  "post",
  "X",
];

const oddPaths = [
  "/",
  "//",
  "/../",
  "/%2e%2e/",
  "%00",
  "%",
  "%ff",
  "%zz",
  "?",
  "?stream=true",
  "?wait=1e9",
  "?limit=-1&after=%00",
  "?api-key=",
  "?alt=sse",
  "#x",
  "*",
  "/v1",
  "/api",
  "/console",
  "a".repeat(500),
  "/x".repeat(300),
  "http://evil.example/v1/models",
];

/** Headers that decide where a request ends. */
const framingHeaders: ReadonlySet<string> = new Set([
  "expect",
  "transfer-encoding",
  "connection",
  "content-length",
]);

const oddHeaders: readonly (readonly [name: string, values: readonly string[]])[] = [
  [
    "content-type",
    [
      "",
      "text/plain",
      "application/json; charset=utf-16",
      "multipart/form-data",
      "multipart/form-data; boundary=",
      "application/x-www-form-urlencoded",
      "application/grpc",
      "application/connect+json",
      "application/proto",
      "application/grpc-web-text",
      "x",
      "a/b".repeat(200),
    ],
  ],
  [
    "authorization",
    [
      "",
      "Bearer",
      "Bearer ",
      "Bearer x",
      "Basic eDp5",
      "Bearer uas_00000000000000000000000000000000",
      "Key x",
      `Bearer ${"k".repeat(4_000)}`,
      "Bearer \u00ff\u00fe",
    ],
  ],
  ["x-api-key", ["", "x", "uas_00000000000000000000000000000000"]],
  ["accept", ["", "*/*", "text/event-stream", "x"]],
  ["accept-encoding", ["gzip", "br;q=0", "identity;q=0", "x"]],
  ["expect", ["100-continue", "200-ok"]],
  ["connection", ["close", "upgrade", "keep-alive, close", "x"]],
  ["upgrade", ["websocket", "h2c"]],
  ["transfer-encoding", ["chunked", "gzip, chunked", "identity", "x"]],
  ["content-length", ["0", "5", "-1", "1e3", "99999999999999999999", ""]],
  [
    "host",
    ["", "a b", "a, b", "[::1", "%zz", "a/b", "fuzz:99999", "evil.example", "x".repeat(3_000)],
  ],
  ["x-request-id", ["", "x".repeat(257), "a b", "\u00e9", "ok-id"]],
  ["x-uas-strict", ["true", "1", "x"]],
  ["x-uas-cost", ["true", "x"]],
  [
    "x-uas-route",
    ["{}", "{", '{"only":["x"]}', '{"max_price":{"input":"x"}}', '{"order":[1]}', "[]"],
  ],
  ["anthropic-version", ["2023-06-01", "x", ""]],
  ["anthropic-beta", ["x", "a,b,c"]],
  ["idempotency-key", ["", "same", "x".repeat(400)]],
  ["range", ["bytes=0-1", "bytes=5-1", "bytes=-0", "x"]],
  ["if-none-match", ["*", '"x"']],
  ["prefer", ["wait", "wait=5", "wait=-1", "respond-async"]],
  ["x-dashscope-sse", ["enable", "x"]],
  ["x-dashscope-async", ["enable"]],
  ["x-callback-url", ["https://127.0.0.1/", "http://example.com/", "x"]],
  ["origin", ["null", "https://evil.example", ""]],
  ["cookie", ["uas_console=x", "a=b; a=c", "=;;", "x".repeat(3_000)]],
  ["sec-fetch-site", ["same-origin", "cross-site", "x"]],
  ["x-forwarded-for", ["1.2.3.4", "x", "::1"]],
  ["connect-protocol-version", ["1", "2", ""]],
  ["connect-timeout-ms", ["1", "0", "-1", "99999999999999999", "x"]],
  ["grpc-timeout", ["1n", "5m", "99999999999H", "x", ""]],
  ["te", ["trailers", "x"]],
  ["trailer", ["x"]],
  ["x-filler", ["f".repeat(15_000), "f".repeat(17_000), ""]],
];

/** Whether the client requested an early end of the reply, so that its end proves nothing. */
export function isExpectingLess(shot: Shot): boolean {
  return shot.readMax !== Infinity || shot.then === "reset" || headerOf(shot, "expect") !== "";
}
