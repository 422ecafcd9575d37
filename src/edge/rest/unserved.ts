/**
 * Endpoints of other APIs that SDKs call and this gateway does not serve, each with its
 * replacement.
 */

/** Paths, and advice about their replacement. */
interface Unserved {
  /** Matches the path without its query. */
  readonly path: RegExp;
  /** The rest of a sentence that begins with the path. */
  readonly advice: string;
}

const tasks = (params: string): string => `submit a task to POST /api/ai/tasks with ${params}`;

const unserved: readonly Unserved[] = [
  { path: /^\/v1\/videos(?:\/|$)/, advice: tasks("videoParams") },
  { path: /^\/v1\/audio\/voices(?:\/|$)/, advice: tasks("audioParams") },
  {
    path: /^\/v1\/audio\/(?!speech|transcri|transla)/,
    advice: "send audio to a model that accepts it, as `input_audio` of POST /v1/chat/completions",
  },
  { path: /^\/v1\/edits$/, advice: "use POST /v1/chat/completions" },
  { path: /^\/v1\/complete$/, advice: "use POST /v1/messages" },
  {
    path: /^\/v1\/(?:files|uploads)(?:\/|$)/,
    advice: "send files in the request itself, as base64 or by URL",
  },
  {
    path: /^\/v1\/(?:batches|messages\/batches)(?:\/|$)/,
    advice: `${tasks("textParams")}, or send \`"background": true\` to POST /v1/responses`,
  },
  {
    path: /^\/v1\/(?:assistants|threads|conversations)(?:\/|$)/,
    advice:
      "use POST /v1/responses, which continues the response that `previous_response_id` names",
  },
  {
    path: /^\/v1\/realtime(?:\/|$)/,
    advice: 'use POST /v1/responses with `"stream": true`',
  },
  {
    path: /^\/v1\/(?:organization|usage|dashboard)(?:\/|$)/,
    advice: "see the console for usage; GET /v1/credits and GET /v1/key return balance and limit",
  },
  {
    path: /^\/v1\/(?:fine_tuning|vector_stores|evals|containers|skills|chatkit|agents)(?:\/|$)/,
    advice: "it has no counterpart here; GET /v1/models lists the available models",
  },
  {
    path: /^\/v1(?:beta|alpha)?\/(?:models\/[^/]+:|cachedContents|interactions)/,
    advice:
      "Gemini's native API is served below a prefix such as /gemini, if the operator has configured one; every text model is available at POST /v1/chat/completions",
  },
  {
    path: /^\/(?:gemini|dashscope|fal|replicate)\//,
    advice:
      "a vendor's native API is served only below the `native_prefix` that the operator configures; GET /v1/models lists the models of this gateway",
  },
  {
    path: /^\/(?:v1beta|v1alpha)(?:\/|$)/,
    advice:
      "Gemini's native API is served below a prefix such as /gemini; GET /v1/models lists models",
  },
  {
    path: /^\/openai\/(?:deployments|v1)(?:\/|$)/,
    advice: "use the OpenAI client, not the Azure one, with this address followed by /v1",
  },
  { path: /^\/api\/(?:chat|generate)$/, advice: "use POST /v1/chat/completions" },
  { path: /^\/api\/(?:tags|ps|show)$/, advice: "use GET /v1/models" },
  { path: /^\/api\/embed(?:dings)?$/, advice: "use POST /v1/embeddings" },
];

/** The path to use in place of one that is not served; undefined if the path is unknown. */
export function adviceFor(path: string): string | undefined {
  const usual = path.startsWith("/v1/v1/") ? path.slice("/v1".length) : path;
  return unserved.find((each) => each.path.test(usual))?.advice;
}
