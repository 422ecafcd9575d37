/** Anything that serves `POST {base_url}/chat/completions` as OpenAI does: vLLM, Ollama, DeepSeek … */
import { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { VendorConfig } from "../config/config.ts";
import { createHttpClient } from "../http/client.ts";
import type { Vendor, VendorKind } from "./vendor.ts";

export const openaiCompatible: VendorKind = {
  dialects: [Dialect.CHAT_COMPLETIONS],
  modelTypes: [ModelType.TEXT],
  needsBaseUrl: true,
  needsApiKey: false,
  create,
};

function create(config: VendorConfig): Vendor {
  const base = new URL(config.baseUrl);
  const client = createHttpClient(base.origin, config.timeouts);
  const path = `${base.pathname.replace(/\/$/, "")}/chat/completions`;
  const credential =
    config.apiKey === undefined ? {} : { authorization: `Bearer ${config.apiKey}` };
  return {
    name: config.name,
    dialects: new Set(openaiCompatible.dialects),
    exchange: (call) =>
      client.send({
        method: "POST",
        path: call.query === "" ? path : `${path}?${call.query}`,
        headers: { ...call.headers, "content-type": "application/json", ...credential },
        body: call.body,
        signal: call.signal,
      }),
    close: () => client.close(),
  };
}
