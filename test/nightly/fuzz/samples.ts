/** Valid requests of every entry point: what the fuzzer starts from. */
import { getOption, hasOption } from "@bufbuild/protobuf";
import { Access, access } from "../../../gen/uas/http/v1/http_pb.ts";
import { routeTable } from "../../../src/edge/rest/route-table.ts";
import { findMethods, findServices } from "../../contract/services.ts";
import { forms, geminiBody, geminiCacheBody, realBodies, taskBodies, writeForm } from "./bodies.ts";
import type { Ids } from "./ids.ts";
import type { Chance } from "./random.ts";
import { encodeMessage, type KnownValues, makeMessage } from "./rpc-messages.ts";
import { type Json, newShot, setHeader, type Shot, writeJson } from "./shot.ts";
import type { World } from "./world.ts";

/** Makes a valid request; which one is by chance. */
export type MakeShot = (chance: Chance) => Shot;

/** The entry points by their names for `--only`. */
export type Entries = Readonly<Record<string, MakeShot>>;

/** Collects the entry points of a running gateway. */
export async function findEntries(world: World, ids: Ids): Promise<Entries> {
  const { rich, poor, victim } = world;
  const key = (shot: Shot, chance: Chance): Shot => {
    const who = chance.is(0.9) ? rich : chance.of([poor, victim]);
    const place = chance.below(20);
    if (place === 0) setHeader(shot, "x-api-key", who.key);
    else if (place === 1)
      shot.target += `${shot.target.includes("?") ? "&" : "?"}api-key=${who.key}`;
    else setHeader(shot, "authorization", `Bearer ${who.key}`);
    return shot;
  };
  const post = (entry: string, target: string, json: Json): Shot =>
    newShot(entry, { target, json, headers: [["content-type", "application/json"]] });
  const get = (entry: string, target: string, method = "GET"): Shot =>
    newShot(entry, { target, method });
  const keyed =
    (make: MakeShot): MakeShot =>
    (chance) =>
      key(make(chance), chance);
  const rows = (entry: string, all: readonly (readonly [string, Json])[]): MakeShot =>
    keyed((chance) => post(entry, ...chance.of(all)));
  const text = (entry: string, paths: readonly string[]): MakeShot =>
    keyed((chance) => {
      const target = chance.of(paths);
      const body = chance.is(0.5)
        ? (realBodies[paths[0] ?? ""] ?? {})
        : shortBody(paths[0], chance);
      const model = chance.of(["m-chat", "m-responses", "m-messages", "m-gemini", "demo/instant"]);
      const stream = chance.is(0.4);
      const shot = post(entry, target, { ...(structuredClone(body) as object), model, stream });
      if (chance.is(0.2)) setHeader(shot, "x-uas-cost", "true");
      return shot;
    });
  const routes = routeTable(await findServices());
  const contractPaths = routes.map(({ route }) => [route.method, route.path] as const);
  return {
    chat: text("chat", [
      "/v1/chat/completions",
      "/api/ai/chat/completions",
      "/api/ai/generate",
      "/api/ai/stream-generate",
    ]),
    responses: text("responses", ["/v1/responses"]),
    messages: text("messages", ["/v1/messages"]),
    count: rows("count", [
      [
        "/v1/messages/count_tokens",
        { model: "m-chat", messages: [{ role: "user", content: "Hi" }] },
      ],
      ["/v1/responses/input_tokens", { model: "m-chat", input: "Hi" }],
    ]),
    embeddings: rows("embeddings", [
      ["/v1/embeddings", { model: "embed", input: ["Hello", "there"], encoding_format: "float" }],
      ["/v1/embeddings", { model: "embed", input: [[1, 2, 3]], dimensions: 8, user: "u" }],
    ]),
    images: rows("images", [
      ["/v1/images/generations", { model: "pictures", prompt: "A boat", n: 2, size: "512x512" }],
      ["/v1/images/generations", { model: "draw", prompt: "A boat", n: 1, size: "256x256" }],
    ]),
    compact: keyed((chance) => {
      const model = chance.of(["m-chat", "m-responses", "m-messages", "m-gemini"]);
      const { instructions, input } = realBodies["/v1/responses"] as { [name: string]: Json };
      const body = chance.is(0.5) ? { instructions, input } : { input: "Hi" };
      return post("compact", "/v1/responses/compact", structuredClone({ model, ...body }) as Json);
    }),
    websocket: keyed((chance) => {
      const model = chance.of(["m-chat", "m-responses", "m-messages", "m-gemini", "demo/instant"]);
      const body = chance.is(0.3)
        ? (realBodies["/v1/responses"] as object)
        : { input: chance.of(["Hi", "long"]), stream_id: chance.of(["", "s"]) };
      const generate = chance.is(0.9);
      return newShot("websocket", {
        ...{ method: "GET", target: "/v1/responses", isWebSocket: true },
        headers: [
          ["connection", "Upgrade"],
          ["upgrade", "websocket"],
          ["sec-websocket-version", "13"],
          ["sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="],
        ],
        json: structuredClone({ type: "response.create", model, generate, ...body }),
      });
    }),
    completions: keyed((chance) =>
      post("completions", "/v1/completions", {
        ...{ model: "instruct", prompt: chance.of(["Hello", ["Hello", "there"]]), max_tokens: 9 },
        ...{ stream: chance.is(0.5), stop: ["END"], n: 1, echo: false },
      }),
    ),
    moderations: rows("moderations", [
      ["/v1/moderations", { model: "moderator", input: "Hello" }],
      ["/v1/moderations", { model: "moderator", input: [{ type: "text", text: "Hello" }] }],
    ]),
    rerank: keyed((chance) => {
      const documents = ["a", "b", { text: "c" }];
      const ask = { model: chance.of(["ranker", "ranker-jina"]), query: "capital?", documents };
      const more = { top_n: 2, return_documents: chance.is(0.5) };
      return post("rerank", chance.of(["/v1/rerank", "/v2/rerank"]), { ...ask, ...more });
    }),
    speech: rows("speech", [
      ["/v1/audio/speech", { model: "voice", input: "Hello", voice: "alloy", speed: 1.5 }],
    ]),
    forms: keyed((chance) => {
      const [path, parts] = chance.of(forms);
      const boundary = "fuzz-boundary";
      const type: [string, string] = ["content-type", `multipart/form-data; boundary=${boundary}`];
      const body = writeForm(parts, boundary);
      return newShot("forms", { target: path, headers: [type], body });
    }),
    state: keyed((chance) => {
      const [method, rest] = chance.of([
        ["GET", ""],
        ["GET", "?stream=true"],
        ["GET", "/input_items?limit=2&order=asc"],
        ["POST", "/cancel"],
        ["DELETE", ""],
      ] as const);
      const id = method === "DELETE" ? "resp_0123456789abcdef" : ids.response;
      return get("state", `/v1/responses/${id}${rest}`, method);
    }),
    chains: rows("chains", [
      ["/v1/responses", { model: "m-chat", input: "And?", previous_response_id: ids.response }],
      ["/v1/responses", { model: "m-chat", input: "Hi", store: true, background: true }],
      [
        "/v1/responses",
        { model: "m-chat", input: [{ type: "item_reference", id: "msg_1" }], store: true },
      ],
    ]),
    tasks: keyed((chance) => {
      const kind = chance.below(6);
      if (kind === 0) return get("tasks", `/api/ai/tasks/${ids.task}?wait=1`);
      if (kind === 1) return get("tasks", `/api/ai/tasks/${ids.task}/cancel`, "POST");
      if (kind === 2) return get("tasks", "/api/ai/tasks?limit=3&status=completed");
      return post("tasks", "/api/ai/tasks", structuredClone(chance.of(taskBodies)));
    }),
    models: keyed((chance) =>
      get(
        "models",
        chance.of([
          "/v1/models",
          "/v1/models?limit=2&after_id=m-chat",
          "/v1/models/demo%2Finstant",
          "/v1/models/demo/instant",
          "/api/ai/models",
          "/api/ai/models/draw/schema",
          "/v1/key",
          "/v1/credits",
        ]),
      ),
    ),
    // Every path of the contract with each method, including those without an entry above.
    routes: keyed((chance) => {
      const [method, path] = chance.of(contractPaths);
      const target = path.replace(
        /\{(\w+)(?:=\*\*)?\}/g,
        (_, name: string) => ids.known[name] ?? "x",
      );
      return method === "POST" ? post("routes", target, {}) : get("routes", target, method);
    }),
    pages: (chance) =>
      get(
        "pages",
        chance.of([
          "/",
          "/console",
          "/console/keys",
          "/openapi.json",
          "/llms.txt",
          "/healthz",
          "/readyz",
          "/metrics",
          `/files/${ids.file}`,
          "/files/00000000000000000000000000.png",
          "/callbacks/0123456789",
        ]),
        chance.of(["GET", "GET", "GET", "HEAD", "OPTIONS", "POST"]),
      ),
    gemini: rows("gemini", [
      ["/gemini/v1beta/models/gemini-x:generateContent", geminiBody],
      ["/gemini/v1beta/models/gemini-x:streamGenerateContent?alt=sse", geminiBody],
      ["/gemini/v1beta/models/gemini-x:countTokens", geminiBody],
      [
        "/gemini/v1beta/models/veo:predictLongRunning",
        {
          instances: [{ prompt: "A boat" }],
          parameters: { aspectRatio: "16:9", durationSeconds: 4 },
        },
      ],
    ]),
    "gemini-objects": keyed((chance) => {
      const { geminiFile: file, geminiCache: cache, geminiInteraction: interaction } = ids;
      const at = (rest: string, method?: string): Shot =>
        get("gemini-objects", `/gemini/v1beta/${rest}`, method);
      const make = (rest: string, json: Json): Shot =>
        post("gemini-objects", `/gemini/${rest}`, structuredClone(json));
      const fileData = { fileUri: `https://generativelanguage.googleapis.com/v1beta/${file}` };
      return chance.of([
        () => at(file),
        () => at(`${file}:download?alt=media`),
        () => at("files/none", "DELETE"),
        () => {
          const shot = make("upload/v1beta/files", { file: { displayName: "a" } });
          if (chance.is(0.5)) setHeader(shot, "x-goog-upload-command", "start");
          return shot;
        },
        () => make("v1beta/cachedContents", geminiCacheBody),
        () => at(cache),
        () => at("cachedContents?pageSize=2"),
        () => at("cachedContents/none", "DELETE"),
        () => Object.assign(make(`v1beta/${cache}`, { ttl: "900s" }), { method: "PATCH" }),
        () =>
          make("v1beta/models/gemini-x:generateContent", {
            ...{ cachedContent: cache, contents: [{ role: "user", parts: [{ text: "Hi" }] }] },
          }),
        () =>
          make("v1beta/models/gemini-x:generateContent", {
            contents: [{ role: "user", parts: [{ fileData }, { text: "Hi" }] }],
          }),
        () => at(ids.geminiOperation),
        () => make("v1beta/interactions", { model: "gemini-x", input: "Hi" }),
        () => make("v1beta/interactions", { model: "gemini-x", input: "Hi", stream: true }),
        () => at(`interactions/${interaction}`),
        () => at(`interactions/${interaction}/cancel`, "POST"),
      ])();
    }),
    replicate: keyed((chance) => {
      const kind = chance.below(8);
      if (kind === 5) return get("replicate", `/replicate/v1/files/${ids.replicateFile}`);
      if (kind === 6)
        return get("replicate", `/replicate/v1/predictions/${ids.prediction}/cancel`, "POST");
      if (kind === 7) {
        const type: [string, string] = ["content-type", "multipart/form-data; boundary=b"];
        const body = writeForm([["content", Buffer.from("x")]], "b");
        return newShot("replicate", { target: "/replicate/v1/files", headers: [type], body });
      }
      if (kind === 0) return get("replicate", `/replicate/v1/predictions/${ids.prediction}`);
      if (kind === 1) return get("replicate", "/replicate/v1/predictions");
      const input = { prompt: "A boat", num_outputs: 1 };
      const target = "/replicate/v1/models/labs/flux/predictions";
      const shot = post("replicate", target, { input });
      if (kind === 2) setHeader(shot, "prefer", "wait");
      return shot;
    }),
    dashscope: keyed((chance) => {
      const services = "/dashscope/api/v1/services/aigc";
      const kind = chance.below(5);
      const task = `/dashscope/api/v1/tasks/${ids.dashscopeTask}`;
      if (kind === 0) return get("dashscope", task);
      if (kind === 4) return get("dashscope", `${task}/cancel`, "POST");
      const body = { input: { prompt: "A boat" }, parameters: { n: 1 } };
      if (kind === 1) {
        const shot = post("dashscope", `${services}/text2image/image-synthesis`, {
          model: "wan2.6-t2i",
          ...body,
        });
        setHeader(shot, "x-dashscope-async", "enable");
        return shot;
      }
      const messages = [{ role: "user", content: "Hi" }];
      const talk = {
        model: "qwen-plus",
        input: { messages },
        parameters: { result_format: "message" },
      };
      const shot = post("dashscope", `${services}/text-generation/generation`, talk);
      if (kind === 2) setHeader(shot, "x-dashscope-sse", "enable");
      return shot;
    }),
    fal: keyed((chance) => {
      const body = { prompt: "A boat", num_images: 1 };
      return chance.of([
        () => post("fal", "/fal/run/fal-ai/flux/schnell", body),
        () => post("fal", "/fal/run/fal-ai/flux/schnell/stream", body),
        () => post("fal", "/fal/queue/fal-ai/flux/schnell", body),
        () => get("fal", `/fal/queue/fal-ai/flux/requests/${ids.falJob}/status`),
        () => get("fal", `/fal/queue/fal-ai/flux/requests/${ids.falJob}`),
        () => get("fal", `/fal/queue/fal-ai/flux/requests/${ids.falJob}/status/stream`),
        () => get("fal", `/fal/queue/fal-ai/flux/requests/${ids.falJob}/cancel`, "PUT"),
        () => {
          const file = { file_name: "a.png", content_type: "image/png" };
          return post("fal", "/fal/rest/storage/upload/initiate", file);
        },
      ])();
    }),
    ...(await rpcEntries(world, ids.known)),
    raw: (chance) =>
      newShot("raw", {
        target: "/",
        listener: chance.of(["public", "internal"] as const),
        raw: chance.is(0.5) ? chance.bytes(chance.below(600)) : brokenHttp2(chance),
        isFramed: false,
      }),
  };
}

/**
 * The RPCs in each protocol: the internal listener, the public one with a key, and the console with
 * its session.
 */
async function rpcEntries(world: World, known: KnownValues): Promise<Entries> {
  const { operatorToken, rich, cookie } = world;
  // Accepting a ledger as it is would hide what the audit finds at the end.
  const methods = (await findMethods()).filter(({ method }) => method.name !== "AcceptLedger");
  const cheap = methods.filter(({ method }) => method.name !== "AuditLedger");
  const make = (entry: string, chance: Chance) => {
    const { method } = chance.of(chance.is(0.99) ? cheap : methods);
    const json = makeMessage(method.input, chance, { known });
    const target = `/${method.parent.typeName}/${method.name}`;
    const needsKey = hasOption(method, access) && getOption(method, access) === Access.KEY;
    const bearer = needsKey || entry === "connect-public" ? rich.key : operatorToken;
    const shot = newShot(entry, { target, json, headers: [["authorization", `Bearer ${bearer}`]] });
    // Views of what happens end with their client.
    if (method.methodKind === "server_streaming") shot.readMs = 300;
    return { shot, method };
  };
  const connect = (entry: string, chance: Chance): Shot => {
    const { shot, method } = make(entry, chance);
    const isStream = method.methodKind !== "unary";
    const isJson = chance.is(0.7);
    const form = isJson ? "json" : "proto";
    setHeader(shot, "content-type", `application/${isStream ? "connect+" : ""}${form}`);
    setHeader(shot, "connect-protocol-version", "1");
    if (!isJson) shot.body = encodeMessage(method, shot.json ?? {});
    if (isStream && isJson) shot.body = Buffer.from(JSON.stringify(shot.json));
    if (isStream || !isJson) shot.json = undefined;
    if (isStream) shot.body = envelope(shot.body, chance);
    return shot;
  };
  const internal = (shot: Shot): Shot => Object.assign(shot, { listener: "internal" });
  return {
    connect: (chance) => internal(connect("connect", chance)),
    "connect-public": (chance) => connect("connect-public", chance),
    console(chance) {
      const { shot } = make("console", chance);
      shot.target = `/console/rpc${shot.target}`;
      shot.headers = [
        ["host", "fuzz"],
        ["content-type", "application/json"],
        ["cookie", cookie],
        ["sec-fetch-site", "same-origin"],
      ];
      return shot;
    },
    "grpc-web"(chance) {
      const { shot, method } = make("grpc-web", chance);
      setHeader(
        shot,
        "content-type",
        chance.of(["application/grpc-web+proto", "application/grpc-web-text"]),
      );
      shot.body = envelope(encodeMessage(method, shot.json ?? {}), chance);
      shot.json = undefined;
      return internal(shot);
    },
    grpc(chance) {
      const { shot, method } = make("grpc", chance);
      setHeader(shot, "content-type", "application/grpc+proto");
      setHeader(shot, "te", "trailers");
      shot.body = envelope(encodeMessage(method, shot.json ?? {}), chance);
      shot.json = undefined;
      shot.isHttp2 = true;
      return internal(shot);
    },
    http2(chance) {
      const shot = internal(connect("http2", chance));
      writeJson(shot);
      shot.isHttp2 = true;
      return shot;
    },
  };
}

/** The five bytes before each message of a stream; now and then they lie. */
function envelope(message: Buffer, chance: Chance): Buffer {
  const head = Buffer.alloc(5);
  head[0] = chance.is(0.95) ? 0 : chance.of([1, 2, 128, 255]);
  const length = chance.is(0.95)
    ? message.length
    : chance.of([0, message.length + 1, 2 ** 31, 2 ** 32 - 1]);
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, message]);
}

/** The preface of HTTP/2, then frames that are no conversation. */
function brokenHttp2(chance: Chance): Buffer {
  const frames = Array.from({ length: 1 + chance.below(8) }, () => {
    const payload = chance.bytes(chance.below(60));
    const head = Buffer.alloc(9);
    head.writeUIntBE(chance.is(0.8) ? payload.length : chance.below(2 ** 24), 0, 3);
    head[3] = chance.below(12);
    head[4] = chance.below(64);
    head.writeUInt32BE(chance.of([0, 1, 1, 2, 3, 2 ** 31 - 1]), 5);
    return Buffer.concat([head, payload]);
  });
  return Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), ...frames]);
}

/** A short request in the words that decide what the simulated vendors say. */
function shortBody(path: string | undefined, chance: Chance): Json {
  const words = chance.of([
    "Hi",
    "think, then call two tools",
    "long",
    "refuse",
    "count reasoning",
    "echo system",
  ]);
  if (path === "/v1/responses") return { input: words, store: chance.is(0.3) };
  return { max_tokens: 100, messages: [{ role: "user", content: words }] };
}
