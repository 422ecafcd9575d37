/**
 * Names of span attributes. `gen_ai.*` are those of version 1.41.1 of the GenAI semantic
 * conventions, which trace viewers know; other public names are those of HTTP spans. `uas.*` are
 * not standardised.
 */

/** Public names: equal to those of `@opentelemetry/semantic-conventions` 1.45.0. */
export const standard = {
  errorType: "error.type",
  httpMethod: "http.request.method",
  httpRoute: "http.route",
  httpStatus: "http.response.status_code",
  serverAddress: "server.address",
  serverPort: "server.port",
  operation: "gen_ai.operation.name",
  provider: "gen_ai.provider.name",
  requestModel: "gen_ai.request.model",
  requestMaxTokens: "gen_ai.request.max_tokens",
  requestStream: "gen_ai.request.stream",
  requestChoices: "gen_ai.request.choice.count",
  responseFirstChunk: "gen_ai.response.time_to_first_chunk",
  inputTokens: "gen_ai.usage.input_tokens",
  outputTokens: "gen_ai.usage.output_tokens",
  cacheReadTokens: "gen_ai.usage.cache_read.input_tokens",
  cacheCreationTokens: "gen_ai.usage.cache_creation.input_tokens",
  reasoningTokens: "gen_ai.usage.reasoning.output_tokens",
} as const;

/** The gateway's own names. */
export const own = {
  requestId: "uas.request_id",
  callId: "uas.call_id",
  account: "uas.account.id",
  key: "uas.key.id",
  model: "uas.model",
  vendor: "uas.vendor",
  credential: "uas.credential",
  ending: "uas.ending",
  upstreamRequestId: "uas.upstream_request_id",
  costAmount: "uas.cost.amount",
  costCurrency: "uas.cost.currency",
  vendorCostAmount: "uas.vendor_cost.amount",
  waitMs: "uas.wait_ms",
  task: "uas.task.id",
  delivery: "uas.delivery.id",
  outcome: "uas.outcome",
} as const;

/** The conventions' names of vendors, by the host of their address. */
const providers: ReadonlyMap<string, string> = new Map([
  ["api.openai.com", "openai"],
  ["api.anthropic.com", "anthropic"],
  ["generativelanguage.googleapis.com", "gcp.gemini"],
  ["api.cohere.com", "cohere"],
  ["api.deepseek.com", "deepseek"],
  ["api.groq.com", "groq"],
  ["api.mistral.ai", "mistral_ai"],
  ["api.moonshot.ai", "moonshot_ai"],
  ["api.perplexity.ai", "perplexity"],
  ["api.x.ai", "x_ai"],
]);

/** `gen_ai.provider.name` of a vendor. @param vendor its name in uas.yaml, for all others */
export function providerName(host: string, vendor: string): string {
  return providers.get(host) ?? vendor;
}
