/** Quirks of vendors of responses. */
import type { Json } from "../vendor-reply.ts";
import { editLast, hasCalls, hasFunctions, type Quirk, without } from "./quirk.ts";

const typeOf = (event: Json): string => event["type"] ?? "";
const isFinal = (event: Json): boolean =>
  ["response.completed", "response.incomplete"].includes(typeOf(event));

/** Leaves out events. */
const leaveOut =
  (pattern: RegExp) =>
  (events: readonly Json[]): readonly Json[] =>
    events.filter((event) => !pattern.test(typeOf(event)));

const everyEvent =
  (edit: (event: Json) => Json) =>
  (events: readonly Json[]): readonly Json[] =>
    events.map(edit);

/** Changes the response that ends the reply. */
function ending(edit: (response: Json) => Json): Pick<Quirk, "stream" | "whole"> {
  return {
    whole: edit,
    stream: (events) =>
      editLast(events, isFinal, (event) => [{ ...event, response: edit(event["response"]) }]),
  };
}

/** Changes all items, in events and in the final output. */
function items(edit: (item: Json) => Json): Pick<Quirk, "stream" | "whole"> {
  const inOutput = (response: Json): Json => ({
    ...response,
    output: (response["output"] ?? []).map(edit),
  });
  return {
    whole: inOutput,
    stream: (events) =>
      events.map((event) => {
        if (event["item"] != null) return { ...event, item: edit(event["item"]) };
        return isFinal(event) ? { ...event, response: inOutput(event["response"]) } : event;
      }),
  };
}

export const responsesQuirks: readonly Quirk[] = [
  {
    name: "leaves out output_index",
    vendors: "Bedrock and vLLM behind proxies",
    source: "maximhq/bifrost#6487",
    about: "places",
    stream: everyEvent((event) => without(event, "output_index")),
  },
  {
    name: "leaves out content_index",
    vendors: "open-responses-server",
    source: "teabranch/open-responses-server#44",
    about: "content index",
    stream: everyEvent((event) => without(event, "content_index", "summary_index")),
  },
  {
    name: "leaves out item_id",
    vendors: "proxies",
    source: "Oaklight/llm-rosetta#56",
    about: "places",
    stream: everyEvent((event) => without(event, "item_id")),
  },
  {
    name: "gives all items output_index 0",
    vendors: "proxies",
    source: "Oaklight/llm-rosetta#56",
    about: "places",
    stream: everyEvent((event) =>
      "output_index" in event ? { ...event, output_index: 0 } : event,
    ),
  },
  {
    name: "changes the id of an item from event to event",
    vendors: "GitHub Copilot",
    source: "vercel/ai#18548",
    about: "places",
    stream: (events) =>
      events.map((event, at) => ({
        ...event,
        ...("item_id" in event && { item_id: `${event["item_id"]}_${at}` }),
        ...(event["item"] != null && {
          item: { ...event["item"], id: `${event["item"].id}_${at}` },
        }),
      })),
  },
  {
    name: "gives an item one id when it begins, and another at its end and in the output",
    vendors: "mistral.rs",
    source: "EricLBuehler/mistral.rs#1944",
    about: "places",
    stream: (events) =>
      events.map((event) => {
        const renamed = (item: Json, end: string): Json => ({
          ...item,
          id: `${item["id"]}_${end}`,
        });
        if (typeOf(event) === "response.output_item.done") {
          return { ...event, item: renamed(event["item"], "done") };
        }
        if (!isFinal(event)) return event;
        const { response } = event;
        const output = (response.output ?? []).map((item: Json) => renamed(item, "output"));
        return { ...event, response: { ...response, output } };
      }),
  },
  {
    name: "sends the text at once, and announces nothing",
    vendors: "gemini-web2api",
    source: "Sophomoresty/gemini-web2api#57",
    about: "events",
    suits: (of) => !hasCalls(of) && of.reasoning === "",
    stream: leaveOut(/\.delta$|\.added$|part\.done$|item\.done$|in_progress$/),
  },
  {
    name: "gives all items the id of the response",
    vendors: "LiteLLM",
    source: "BerriAI/litellm#27442",
    about: "places",
    stream(events) {
      const id = "resp_b1946ac92492d2347c6235b4";
      return events.map((event) => ({
        ...event,
        ...("item_id" in event && { item_id: id }),
        ...(event["item"] != null && { item: { ...event["item"], id } }),
      }));
    },
  },
  {
    name: "shows reasoning as text, not as a summary",
    vendors: "vLLM, LM Studio, OpenRouter",
    source: "maximhq/bifrost#5149",
    about: "reasoning",
    ...items((item) =>
      item["type"] === "reasoning"
        ? {
            ...item,
            summary: [],
            content: (item["summary"] ?? []).map(({ text }: Json) => ({
              type: "reasoning_text",
              text,
            })),
          }
        : item,
    ),
    stream(events) {
      const edited = items((item) =>
        item["type"] === "reasoning"
          ? {
              ...item,
              summary: [],
              content: (item["summary"] ?? []).map(({ text }: Json) => ({
                type: "reasoning_text",
                text,
              })),
            }
          : item,
      ).stream?.(events, undefined as never);
      return (edited ?? events)
        .filter(({ type }) => !/summary_part/.test(type ?? ""))
        .map((event) =>
          /summary_text/.test(typeOf(event))
            ? {
                ...without(event, "summary_index"),
                content_index: 0,
                type: typeOf(event).replace("summary_text", "text"),
              }
            : event,
        );
    },
  },
  {
    name: "leaves out the ids of items",
    vendors: "proxies",
    source: "Oaklight/llm-rosetta#56",
    about: "places",
    ...items((item) => without(item, "id")),
  },
  {
    name: "sends no deltas",
    vendors: "proxies that do not stream",
    source: "Sophomoresty/gemini-web2api#57",
    about: "events",
    stream: leaveOut(/\.delta$/),
  },
  {
    name: "sends values in done events only, and no done items",
    vendors: "opencodex, ChatGPT behind proxies",
    source: "lidge-jun/opencodex#4652",
    about: "events",
    stream: leaveOut(/\.delta$|output_item\.done$/),
  },
  {
    name: "sends no done items",
    vendors: "opencodex",
    source: "lidge-jun/opencodex#4652",
    about: "events",
    stream: leaveOut(/output_item\.done$/),
  },
  {
    name: "sends deltas, and no event that something is done",
    vendors: "LiteLLM",
    source: "BerriAI/litellm#22102",
    about: "events",
    stream: leaveOut(/\.done$/),
  },
  {
    name: "announces no parts",
    vendors: "LiteLLM, sub2api",
    source: "BerriAI/litellm#24445",
    about: "events",
    stream: leaveOut(/part\.(?:added|done)$/),
  },
  {
    name: "announces no items, and sends them when they are done",
    vendors: "proxies that do not stream",
    source: "Sophomoresty/gemini-web2api#57",
    about: "events",
    stream: leaveOut(/\.delta$|\.added$|part\.done$|(?:text|input|arguments|refusal)\.done$/),
  },
  {
    name: "sends the reply in the last event only",
    vendors: "proxies that do not stream",
    source: "duolahypercho/codex-router#814",
    about: "output",
    stream: (events) =>
      events.filter((event) => /^response\.(?:created|completed|incomplete)$/.test(typeOf(event))),
  },
  {
    name: "does not announce the response",
    vendors: "LiteLLM",
    source: "BerriAI/litellm#22102",
    about: "start",
    stream: leaveOut(/^response\.(?:created|in_progress)$/),
  },
  {
    name: "announces the response in words of its own",
    vendors: "OpenAI in background mode",
    source: "https://platform.openai.com/docs/guides/background",
    about: "start",
    stream: ([first, ...events]) => [
      { ...first, type: "response.queued" },
      ...events.map((event) => event),
    ],
  },
  {
    name: "leaves the output of the last event empty",
    vendors: "ChatGPT's backend",
    source: "QuantumNous/new-api#4362",
    about: "output",
    stream: (events) =>
      editLast(events, isFinal, (event) => [
        { ...event, response: { ...event["response"], output: [] } },
      ]),
  },
  {
    name: "leaves out the output of the last event",
    vendors: "proxies of ChatGPT's backend",
    source: "BerriAI/litellm#32724",
    about: "output",
    stream: (events) =>
      editLast(events, isFinal, (event) => [
        { ...event, response: without(event["response"], "output") },
      ]),
  },
  {
    name: "writes the output of the last event as null",
    vendors: "proxies of ChatGPT's backend",
    source: "sipeed/picoclaw#2674",
    about: "output",
    stream: (events) =>
      editLast(events, isFinal, (event) => [
        { ...event, response: { ...event["response"], output: null } },
      ]),
  },
  {
    name: "leaves reasoning out of the final output",
    vendors: "Copilot, proxies",
    source: "caozhiyuan/copilot-api#72",
    about: "output",
    stream: (events) =>
      editLast(events, isFinal, (event) => {
        const { response } = event;
        const output = (response.output ?? []).filter((item: Json) => item["type"] !== "reasoning");
        return [{ ...event, response: { ...response, output } }];
      }),
  },
  {
    name: "repeats done items",
    vendors: "proxies",
    source: "maximhq/bifrost#6487",
    about: "repeat",
    stream: (events) =>
      events.flatMap((event) =>
        typeOf(event) === "response.output_item.done" ? [event, event] : [event],
      ),
  },
  {
    name: "begins a call with an empty object",
    vendors: "Bedrock behind proxies",
    source: "openai/openai-agents-js#712",
    about: "input",
    suits: hasFunctions,
    stream: (events) =>
      events.map((event) =>
        event["item"]?.arguments === ""
          ? { ...event, item: { ...event["item"], arguments: "{}" } }
          : event,
      ),
  },
  {
    name: "sends an empty object before the arguments",
    vendors: "Bedrock behind proxies",
    source: "openai/openai-agents-js#712",
    about: "input",
    suits: hasFunctions,
    stream: (events) =>
      events.flatMap((event) =>
        typeOf(event) === "response.output_item.added" && event["item"]?.type === "function_call"
          ? [
              event,
              {
                type: "response.function_call_arguments.delta",
                item_id: event["item"].id,
                output_index: event["output_index"],
                delta: "{}",
              },
            ]
          : [event],
      ),
  },
  {
    name: "begins a call with all of its arguments",
    vendors: "vLLM",
    source: "vllm-project/vllm#44348",
    about: "input",
    suits: hasFunctions,
    stream(events, { calls }) {
      const inputs = new Map(calls.map(({ id, input }) => [id, input]));
      return events.map((event) =>
        event["item"]?.arguments === ""
          ? { ...event, item: { ...event["item"], arguments: inputs.get(event["item"].call_id) } }
          : event,
      );
    },
  },
  {
    name: "begins a call without arguments",
    vendors: "proxies",
    source: "Oaklight/llm-rosetta#56",
    about: "input",
    suits: hasCalls,
    stream: (events) =>
      events.map((event) =>
        typeOf(event) === "response.output_item.added" && event["item"] != null
          ? { ...event, item: without(event["item"], "arguments", "input", "content", "summary") }
          : event,
      ),
  },
  {
    name: "tells the name of a call at its end",
    vendors: "vLLM",
    source: "vercel/ai#16507",
    about: "name",
    suits: hasCalls,
    stream: (events) =>
      events.map((event) =>
        typeOf(event) === "response.output_item.added" && event["item"]?.name !== undefined
          ? { ...event, item: { ...event["item"], name: "" } }
          : event,
      ),
  },
  {
    name: "interleaves the items of parallel calls",
    vendors: "OpenAI",
    source: "https://platform.openai.com/docs/guides/function-calling",
    // Calls whose beginnings are late come in another order.
    about: ["name", "events"],
    suits: hasCalls,
    stream(events) {
      const isOf = (event: Json): boolean =>
        /function_call|custom_tool_call/.test(event["item"]?.type ?? typeOf(event));
      const lanes = Map.groupBy(events.filter(isOf), (event) => event["output_index"]);
      const most = Math.max(0, ...[...lanes.values()].map(({ length }) => length));
      const mixed = Array.from({ length: most }, (_, at) =>
        [...lanes.values()].flatMap((lane) => lane.slice(at, at + 1)),
      ).flat();
      const first = events.findIndex(isOf);
      if (first < 0) return events;
      const others = events.filter((event) => !isOf(event));
      return [...others.slice(0, first), ...mixed, ...others.slice(first)];
    },
  },
  {
    name: "leaves out sequence numbers",
    vendors: "proxies",
    source: "Sophomoresty/gemini-web2api#57",
    stream: everyEvent((event) => without(event, "sequence_number")),
  },
  {
    name: "writes absent lists as null",
    vendors: "proxies in Go and Java",
    source: "pydantic/pydantic-ai#5165",
    ...items((item) => ({
      ...item,
      ...(item["summary"]?.length === 0 && { summary: null }),
      ...(item["type"] === "reasoning" && { content: null, encrypted_content: null }),
      ...(item["content"]?.length > 0
        ? { content: item["content"].map((each: Json) => ({ ...each, annotations: null })) }
        : item["content"] !== undefined && { content: null }),
    })),
  },
  {
    name: "leaves out the status",
    vendors: "proxies",
    source: "Oaklight/llm-rosetta#56",
    about: "status",
    suits: ({ ending: why }) => why === "usual",
    ...ending((response) => without(response, "status", "incomplete_details", "error")),
  },
  {
    name: "ends a cut reply by response.completed",
    vendors: "LiteLLM, vLLM",
    source: "BerriAI/litellm#32724",
    about: "status",
    suits: ({ ending: why }) => why === "limit",
    stream: (events) =>
      editLast(events, isFinal, (event) => [{ ...event, type: "response.completed" }]),
  },
  {
    name: "reports usage without details",
    vendors: "small servers",
    source: "MiniMax-AI/MiniMax-M2.5#2",
    about: "usage",
    suits: ({ tokens: { cached, written, reasoning } }) => cached + written + reasoning === 0,
    ...ending((response) => ({
      ...response,
      usage: without(
        response["usage"] ?? {},
        "total_tokens",
        "input_tokens_details",
        "output_tokens_details",
      ),
    })),
  },
  {
    name: "reports cached tokens under the names of Anthropic",
    vendors: "proxies of Anthropic",
    source: "BerriAI/litellm#39505",
    about: "usage",
    ...ending((response) => {
      const { cached_tokens: cached, cache_write_tokens: written } =
        response["usage"]?.input_tokens_details ?? {};
      const names = {
        cache_read_input_tokens: cached ?? 0,
        cache_creation_input_tokens: written ?? 0,
      };
      return {
        ...response,
        usage: { ...response["usage"], ...names, input_tokens_details: { cached_tokens: 0 } },
      };
    }),
  },
  {
    name: "shows hidden reasoning only in the total",
    vendors: "xAI, Gemini behind proxies",
    source: "Clarifai/clarifai-python#978",
    about: "usage",
    // The surplus of the total is cached input, if it equals that count.
    suits: ({ tokens: { cached, written, reasoning } }) => cached + written === 0 && reasoning > 0,
    ...ending((response) => {
      const { usage } = response;
      const hidden = usage?.output_tokens_details?.reasoning_tokens ?? 0;
      return {
        ...response,
        usage: {
          ...usage,
          output_tokens: usage.output_tokens - hidden,
          output_tokens_details: undefined,
        },
      };
    }),
  },
  {
    name: "reports usage 0 when it begins",
    vendors: "vLLM",
    source: "zai-org/GLM-5#139",
    stream: (events) =>
      events.map((event) =>
        typeOf(event) === "response.created"
          ? {
              ...event,
              response: {
                ...event["response"],
                usage: { input_tokens: 0, output_tokens: 0, total_tokens: 0 },
              },
            }
          : event,
      ),
  },
  {
    name: "sends events of types that nobody knows",
    vendors: "ChatGPT's backend, xAI",
    source: "https://platform.openai.com/docs/api-reference/responses-streaming",
    stream: (events) =>
      events.flatMap((event) => [
        { type: "codex.rate_limits", plan_type: "plus", rate_limits: { allowed: true } },
        event,
        { type: "keepalive", sequence_number: 3 },
      ]),
  },
  {
    name: "writes error null in every event",
    vendors: "proxies in Go",
    source: "QuantumNous/new-api#7486",
    stream: everyEvent((event) => ({ ...event, error: null })),
    whole: (reply) => ({ ...reply, error: null }),
  },
  {
    name: "writes no names of events",
    vendors: "compatible vendors",
    source: "vm0-ai/vm0#24687",
    about: "event names",
    streamText: (text) => text.replaceAll(/(?<=^|\n)event:[^\n]*\n/g, ""),
  },
];
