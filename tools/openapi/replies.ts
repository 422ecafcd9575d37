/**
 * The schemas of replies in `gen/openapi.json`. Replies of the platform's endpoints are described
 * completely; those in a style of another API by the members that every client reads, because
 * vendors may add others.
 */
import { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import type { RestRoute } from "../../src/edge/rest/route-table.ts";

/** A JSON Schema, or another part of an OpenAPI document. */
export type JsonPart = Readonly<Record<string, unknown>>;

const text: JsonPart = { type: "string" };
const flag: JsonPart = { type: "boolean" };
const count: JsonPart = { type: "integer", minimum: 0 };
const amount: JsonPart = { type: "string", description: "Decimal USD", pattern: "^-?[0-9.]+$" };
const dollars: JsonPart = { type: "number", description: "USD" };
const time: JsonPart = { type: "string", format: "date-time" };
const any: JsonPart = {};

function list(items: JsonPart): JsonPart {
  return { type: "array", items };
}

function orNull(schema: JsonPart): JsonPart {
  const { type, ...rest } = schema;
  return typeof type === "string"
    ? { type: [type, "null"], ...rest }
    : { anyOf: [schema, { type: "null" }] };
}

function words(...values: readonly string[]): JsonPart {
  return { type: "string", enum: values };
}

/** An object with these members and no others. @param optional those that may be absent */
function closed(members: Readonly<Record<string, JsonPart>>, ...optional: string[]): JsonPart {
  return { ...open(members, ...optional), additionalProperties: false };
}

/** An object with these members, and perhaps others. */
function open(members: Readonly<Record<string, JsonPart>>, ...optional: string[]): JsonPart {
  const required = Object.keys(members).filter((name) => !optional.includes(name));
  return { type: "object", properties: members, ...(required.length > 0 && { required }) };
}

function ref(name: string): JsonPart {
  return { $ref: `#/components/schemas/${name}` };
}

const status = words("progress", "completed", "failed", "cancelled");

/** The schemas that several replies share, by their names in `components`. */
export const replySchemas: Readonly<Record<string, JsonPart>> = {
  Task: closed({
    taskId: text,
    modelKey: text,
    taskType: text,
    callbackId: orNull(text),
    status,
    stage: text,
    progress: { type: "number", minimum: 0, maximum: 100 },
    resultUrl: orNull(text),
    resultUrls: list(text),
    resultFiles: list(closed({ url: text, contentType: text, bytes: count, sha256: text })),
    resultContent: any,
    error: orNull(closed({ code: text, message: text })),
    errorCode: orNull(text),
    usage: closed({ promptTokens: count, completionTokens: count, totalTokens: count }),
    cost: orNull(closed({ amount, currency: text })),
    createdAt: orNull(time),
    startedAt: orNull(time),
    finishedAt: orNull(time),
    expiresAt: orNull(time),
    cancelRequested: flag,
  }),
  Model: closed({
    modelKey: text,
    name: text,
    type: text,
    price: {
      type: "object",
      description:
        "Decimal USD by unit; tiers and images are lists of prices, serviceTiers a price by tier",
      additionalProperties: { anyOf: [amount, list({ type: "object" }), { type: "object" }] },
    },
    maxOutputTokens: orNull(count),
    maxContextTokens: orNull(count),
    endpoints: list(text),
    features: list(text),
    deadlineMs: orNull(count),
    cancelBilling: text,
  }),
  ModelOfApi: open({
    id: text,
    object: words("model"),
    created: count,
    owned_by: text,
    capabilities: {
      type: ["object", "null"],
      description: "Whether it can do each of these; null with the header anthropic-version",
      additionalProperties: flag,
    },
  }),
  Response: open({
    id: text,
    object: words("response"),
    created_at: { type: "number" },
    status: words("queued", "in_progress", "completed", "incomplete", "failed", "cancelled"),
    model: text,
    output: list({ type: "object" }),
    usage: any,
  }),
};

const budget = closed(
  {
    reset: orNull(text),
    limit: dollars,
    usage: dollars,
    remaining: dollars,
    resets_at: time,
    time_zone: text,
  },
  "resets_at",
);

/** Replies of the platform's own endpoints, by method. */
const own: Readonly<Record<string, JsonPart>> = {
  submitTask: closed(
    {
      taskId: text,
      status,
      progress: { type: "number" },
      modelKey: text,
      callbackId: text,
      createdAt: orNull(time),
    },
    "callbackId",
  ),
  getTask: ref("Task"),
  cancelTask: ref("Task"),
  listTasks: closed({ tasks: list(ref("Task")), nextPageToken: text }, "nextPageToken"),
  getModelSchema: closed({
    modelKey: text,
    type: text,
    paramsField: text,
    schema: { type: "object" },
    example: { type: "object" },
  }),
  listModels: closed({ models: list(ref("Model")), nextPageToken: text }, "nextPageToken"),
  getCurrentKey: closed({
    data: closed({
      label: text,
      usage: dollars,
      limit: orNull(dollars),
      limit_remaining: orNull(dollars),
      limit_reset: orNull(text),
      budgets: list(budget),
      expires_at: orNull(time),
      is_free_tier: flag,
      is_provisioning_key: flag,
      rate_limit: closed({ requests: { type: "integer" }, interval: text }),
    }),
  }),
  getCredits: closed({ data: closed({ total_credits: dollars, total_usage: dollars }) }),
};

const chatCompletion = open(
  {
    id: text,
    object: words("chat.completion"),
    created: count,
    model: text,
    choices: list(open({ index: count, message: { type: "object" }, finish_reason: orNull(text) })),
    usage: any,
  },
  "usage",
);

const message = open({
  id: text,
  type: words("message"),
  role: words("assistant"),
  model: text,
  content: list({ type: "object" }),
  stop_reason: orNull(text),
  usage: { type: "object" },
});

const images = open({
  created: count,
  data: list(open({ url: text, b64_json: text }, "url", "b64_json")),
});

const ranking = open({
  results: list(open({ index: count, relevance_score: { type: "number" } })),
});

/** Replies in the styles of other APIs, by path, else by method and style. */
const styled: Readonly<Record<string, JsonPart>> = {
  "/v1/responses/compact": open({
    id: text,
    object: words("response.compaction"),
    created_at: { type: "number" },
    output: list({ type: "object" }),
    usage: { type: "object" },
  }),
  "/v1/images/generations": images,
  "/v1/images/edits": images,
  "/v1/images/variations": images,
  "/v1/audio/transcriptions": open({ text }),
  "/v1/audio/translations": open({ text }),
  "/v1/rerank": ranking,
  "/v2/rerank": ranking,
  "/v1/moderations": open({
    results: list(open({ flagged: flag, categories: { type: "object" } })),
  }),
  "/v1/completions": open(
    { id: text, object: words("text_completion"), choices: list(open({ text })), usage: any },
    "usage",
  ),
  "/v1/embeddings": open({
    object: words("list"),
    model: text,
    data: list(open({ index: count, embedding: any })),
    usage: { type: "object" },
  }),
  [`exchange/${Dialect.CHAT_COMPLETIONS}`]: chatCompletion,
  [`exchange/${Dialect.RESPONSES}`]: ref("Response"),
  [`exchange/${Dialect.MESSAGES}`]: message,
  [`getResponse/${Dialect.RESPONSES}`]: ref("Response"),
  [`cancelResponse/${Dialect.RESPONSES}`]: ref("Response"),
  [`deleteResponse/${Dialect.RESPONSES}`]: open({ id: text, deleted: flag }),
  [`listInputItems/${Dialect.RESPONSES}`]: open({
    object: words("list"),
    data: list({ type: "object" }),
    has_more: flag,
  }),
  [`countTokens/${Dialect.RESPONSES}`]: open({
    object: words("response.input_tokens"),
    input_tokens: count,
  }),
  [`countTokens/${Dialect.MESSAGES}`]: open({ input_tokens: count }),
  [`listModels/${Dialect.CHAT_COMPLETIONS}`]: open({
    object: words("list"),
    data: list(ref("ModelOfApi")),
  }),
  [`getModel/${Dialect.CHAT_COMPLETIONS}`]: ref("ModelOfApi"),
};

/** A reply that is not streamed, by its type. */
export function replyContent(each: RestRoute): JsonPart {
  if (each.route.path === "/v1/audio/speech") return { "audio/*": { schema: {} } };
  return { "application/json": { schema: replySchema(each) } };
}

function replySchema({ method, route, dialect }: RestRoute): JsonPart {
  const name = method.localName;
  const known = dialect === Dialect.PLATFORM ? own[name] : undefined;
  return known ?? styled[route.path] ?? styled[`${name}/${dialect}`] ?? { type: "object" };
}
