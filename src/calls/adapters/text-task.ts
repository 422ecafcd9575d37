/** Generates the text of TEXT tasks. */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import type { GenerateEvent, Generation } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { ModelConfig, RouteConfig } from "../../config/config.ts";
import type { Clock } from "../../core/clock.ts";
import { chatCompletions } from "../../dialect/chat-completions/dialect.ts";
import { type Submitted, TaskRefused } from "../../provider/task.ts";
import type { PlannedRoute } from "../../routing/planned-route.ts";
import { exchangeText, TextReply, textFiles, textUsage } from "./text-exchange.ts";
import { TypedRequest } from "./typed-adapter.ts";
import type { Upstream } from "../../routing/upstream.ts";

/** The request of one TEXT task. */
export interface TextTaskRequest {
  readonly model: ModelConfig;
  /** The route to use. The task decides about further routes. */
  readonly route: RouteConfig;
  /** The validated parameters, in canonical names. */
  readonly params: JsonObject;
  /** Ends the generation. */
  readonly signal: AbortSignal;
  /** Ends the run regardless of who cancels. Default: `signal`. */
  readonly lastSignal?: AbortSignal | undefined;
}

/**
 * Generates a text, without retries.
 *
 * @throws TaskRefused if nothing runs at the vendor; HttpFailure if that is not known: its cause
 * says whether the
 *   request was sent
 */
export type TextRunner = (request: TextTaskRequest) => Promise<Submitted>;

/** Creates a runner of TEXT tasks. @param clock decides which price is in force */
export function createTextRunner(upstream: Upstream, clock: Pick<Clock, "now">): TextRunner {
  return async ({ model, route, params, signal }) => {
    const planned = plannedRoute(upstream, { model, route, dialect: undefined });
    const request = new TypedRequest({ ...textGeneration(params, model.key), stream: true }, clock);
    const reply = new TextReply();
    const take = (events: readonly GenerateEvent[]): void => reply.add(events);
    const generated = await exchangeText(upstream, { request, model, planned, signal, take });
    const vendorTaskId = generated.upstreamId || reply.id;
    const text = reply.text();
    return {
      ...(vendorTaskId !== "" && { vendorTaskId }),
      done: { text, files: textFiles(text), ...textUsage(generated.metered) },
    };
  };
}

/** Plans one route. @throws TaskRefused if its vendor generates no text; another vendor may */
export function plannedRoute(
  upstream: Upstream,
  {
    model,
    route,
    dialect,
  }: Pick<TextTaskRequest, "model" | "route"> & { dialect: Dialect | undefined },
): PlannedRoute {
  const [planned] = upstream.plan({ ...model, routes: [route] }, dialect);
  // A task stays with the first credential: what the vendor stores for it belongs to that one.
  const credential = upstream.targets.vendor(route.vendor)?.credentials[0].credential;
  if (planned?.dialect !== undefined) return { ...planned, credential };
  throw new TaskRefused("upstream_error", `vendor ${route.vendor} generates no text`, true);
}

/**
 * Converts task parameters to a generation.
 *
 * @throws GatewayError INVALID_REQUEST if a message is invalid; it names members as chat
 * completions does
 */
export function textGeneration(params: JsonObject, model: string): Generation {
  const { maxTokens, topP, responseFormat, seed, temperature, stop } = params;
  const body: Record<string, JsonValue | undefined> = {
    model,
    messages: messagesOf(params),
    temperature,
    stop,
    max_completion_tokens: maxTokens,
    top_p: topP,
    response_format: responseFormat,
    // -1 means random, as for images.
    seed: typeof seed === "number" && seed >= 0 ? seed : undefined,
  };
  const bytes = Buffer.from(JSON.stringify(body));
  return chatCompletions.decodeRequest(bytes, { platformAliases: false });
}

/**
 * The system prompt, the conversation, and the prompt with its images as the last message of the
 * user.
 */
function messagesOf({
  systemPrompt,
  messages,
  prompt,
  imageUrls,
}: JsonObject): readonly JsonValue[] & JsonValue[] {
  const images = Array.isArray(imageUrls) ? imageUrls : [];
  const parts: JsonValue[] = [
    ...(prompt === undefined ? [] : [{ type: "text", text: prompt }]),
    ...images.map((url) => ({ type: "image_url", image_url: { url } })),
  ];
  const content = images.length === 0 && prompt !== undefined ? prompt : parts;
  return [
    ...(systemPrompt === undefined ? [] : [{ role: "system", content: systemPrompt }]),
    ...(Array.isArray(messages) ? messages : []),
    ...(parts.length === 0 ? [] : [{ role: "user", content }]),
  ];
}
