/** Quirks of vendors of chat completions. */
import { type Json, parseExactly } from "../vendor-reply.ts";
import { editLast, hasCalls, hasFunctions, type Quirk, without } from "./quirk.ts";

type Edit = (each: Json) => Json;

const isUsage = (event: Json): boolean => event["usage"] != null && event["choices"]?.length === 0;
const isEnd = (event: Json): boolean => (event["choices"]?.[0]?.finish_reason ?? "") !== "";

/** Changes the choice of each chunk that has one. */
function choices(edit: Edit) {
  return (events: readonly Json[]): readonly Json[] =>
    events.map((event) =>
      event["choices"]?.[0] === undefined
        ? event
        : { ...event, choices: [edit(event["choices"][0])] },
    );
}

/** Changes the delta of each chunk, or the message. */
function deltas(edit: Edit) {
  return choices((choice) => {
    const { delta, message } = choice;
    return {
      ...choice,
      ...(delta != null && { delta: edit(delta) }),
      ...(message != null && { message: edit(message) }),
    };
  });
}

/** Changes each delta of a call, or call of a message. */
function calls(edit: Edit): Edit {
  return (said) =>
    said["tool_calls"]?.length > 0 ? { ...said, tool_calls: said["tool_calls"].map(edit) } : said;
}

/** Changes the message of a whole reply. */
function wholeMessage(edit: Edit) {
  return (reply: Json): Json => {
    const [choice] = reply["choices"];
    return { ...reply, choices: [{ ...choice, message: edit(choice.message) }] };
  };
}

/** Changes the usage of a whole reply, and of chunks. */
function usage(edit: Edit): Pick<Quirk, "stream" | "whole"> {
  const whole: Edit = (reply) =>
    reply["usage"] == null ? reply : { ...reply, usage: edit(reply["usage"]) };
  return { whole, stream: (events) => events.map(whole) };
}

/** Changes the calls of a whole reply, and deltas of calls. */
const everyCall = (edit: Edit): Pick<Quirk, "stream" | "whole"> => ({
  stream: deltas(calls(edit)),
  whole: wholeMessage(calls(edit)),
});

/** Changes whole messages and deltas. */
const everyMessage = (edit: Edit): Pick<Quirk, "stream" | "whole"> => ({
  stream: deltas(edit),
  whole: wholeMessage(edit),
});

const isHead = (call: Json): boolean =>
  Boolean(call["id"] || call["function"]?.name || call["custom"]?.name);
const inputOf = (call: Json): string => call["function"]?.arguments ?? "";

const isSame = (call: Json, before: Json | undefined): boolean =>
  Boolean(call["id"]) && call["id"] === before?.["id"];

/** Puts chunks of calls together: one chunk for each call. */
function wholeCalls(events: readonly Json[]): readonly Json[] {
  const merged: Json[] = [];
  for (const event of events) {
    const [call] = event["choices"]?.[0]?.delta?.tool_calls ?? [];
    const before = merged.at(-1)?.["choices"]?.[0]?.delta?.tool_calls?.[0];
    const isMore = call !== undefined && (!isHead(call) || isSame(call, before));
    if (before === undefined || !isHead(before) || !isMore) merged.push(event);
    else {
      const form = before.custom === undefined ? "function" : "custom";
      const member = form === "custom" ? "input" : "arguments";
      const input = (before[form]?.[member] ?? "") + (call[form]?.[member] ?? "");
      merged[merged.length - 1] = withCall(merged.at(-1) ?? {}, {
        ...before,
        [form]: { ...before[form], [member]: input },
      });
    }
  }
  return merged;
}

function withCall(event: Json, call: Json): Json {
  const [choice] = event["choices"];
  return {
    ...event,
    choices: [{ ...choice, delta: { ...choice.delta, tool_calls: [call] } }],
  };
}

/** Changes each event about a call into several. */
function splitCalls(split: (call: Json, event: Json) => readonly Json[]) {
  return (events: readonly Json[]): readonly Json[] =>
    events.flatMap((event) => {
      const [call] = event["choices"]?.[0]?.delta?.tool_calls ?? [];
      return call === undefined ? [event] : split(call, event).map((each) => withCall(event, each));
    });
}

/** Adds to the chunk with the finish reason; the usage moves there. */
function withUsage(events: readonly Json[], place: (event: Json, usage: Json) => Json) {
  const report = events.find(isUsage)?.["usage"];
  if (report === undefined || !events.some(isEnd)) return events;
  return editLast(
    events.filter((event) => !isUsage(event)),
    isEnd,
    (event) => [place(event, report)],
  );
}

export const chatQuirks: readonly Quirk[] = [
  {
    name: "ends a stream with the whole message",
    vendors: "MiniMax",
    source: "abundantbeing/hermes-browser-extension#11",
    about: "message",
    stream(events, { text, reasoning, refusal, calls: all }) {
      const tool_calls = all.map(({ id, name, input, isCustom }) => ({
        id,
        ...(isCustom
          ? { type: "custom", custom: { name, input } }
          : { type: "function", function: { name, arguments: input } }),
      }));
      const whole = {
        role: "assistant",
        content: text,
        ...(reasoning !== "" && { reasoning_content: reasoning }),
        ...(refusal !== "" && { refusal }),
        ...(all.length > 0 && { tool_calls }),
      };
      return editLast(events, isEnd, (event) => [
        {
          ...event,
          object: "chat.completion",
          choices: [{ ...without(event["choices"][0], "delta"), message: whole }],
        },
      ]);
    },
  },
  {
    name: "writes a message in place of each delta",
    vendors: "proxies that reuse the type of whole replies",
    source: "GCWing/OpenBitFun#792",
    about: "last chunk",
    stream: choices(({ delta, ...choice }) => ({ ...choice, message: delta ?? {} })),
  },
  {
    name: "writes tool_calls as an empty list",
    vendors: "vLLM, mlx-lm",
    source: "vercel/ai#20203",
    about: "no calls",
    ...everyMessage((said) => ({ tool_calls: [], ...said })),
  },
  {
    name: "writes tool_calls as null",
    vendors: "Mistral, Groq",
    source: "microsoft/vscode#329963",
    about: "no calls",
    ...everyMessage((said) => ({ tool_calls: null, ...said })),
  },
  {
    name: "writes an empty call where there is none",
    vendors: "GLM, Qwen behind proxies",
    source: "BerriAI/litellm#29286",
    about: "no calls",
    ...everyMessage((said) => ({
      tool_calls: [{ index: 0, id: "", type: "", function: { name: "", arguments: "" } }],
      ...said,
    })),
  },
  {
    name: "writes an empty function_call beside everything",
    vendors: "Aliyun, SiliconFlow, one-api",
    source: "farion1231/cc-switch#4158",
    about: "function_call",
    ...everyMessage((said) => ({ ...said, function_call: { name: "", arguments: "" } })),
  },
  {
    name: "writes function_call and audio as null",
    vendors: "LiteLLM, vLLM",
    source: "farion1231/cc-switch#4158",
    about: "function_call",
    ...everyMessage((said) => ({ ...said, function_call: null, audio: null, annotations: null })),
  },
  {
    name: "writes all text members in every delta, empty or null",
    vendors: "DeepSeek, SGLang, Moonshot",
    source: "sgl-project/sglang#24293",
    about: "texts",
    ...everyMessage((said) => ({
      content: "",
      reasoning_content: null,
      refusal: null,
      ...said,
      role: "assistant",
    })),
  },
  {
    name: "writes content null beside calls, and empty reasoning",
    vendors: "SGLang, vLLM",
    source: "BerriAI/litellm#37711",
    about: "texts",
    ...everyMessage((said) => ({ content: null, reasoning_content: "", reasoning: "", ...said })),
  },
  {
    name: "writes content as a list of parts",
    vendors: "Mistral, Databricks",
    source: "NousResearch/hermes-agent#94905",
    about: "content",
    ...everyMessage((said) =>
      typeof said["content"] === "string" && said["content"] !== ""
        ? { ...said, content: [{ type: "text", text: said["content"] }] }
        : said,
    ),
  },
  {
    name: "names the reasoning reasoning",
    vendors: "vLLM, Ollama, OpenRouter, Groq",
    source: "strands-agents/harness-sdk#2191",
    about: "reasoning",
    ...everyMessage((said) =>
      "reasoning_content" in said
        ? { ...without(said, "reasoning_content"), reasoning: said["reasoning_content"] }
        : said,
    ),
  },
  {
    name: "writes reasoning under two names",
    vendors: "proxies of vLLM, LM Studio",
    source: "azrtydxb/Fastllm-proxy#23",
    about: "reasoning",
    ...everyMessage((said) =>
      "reasoning_content" in said ? { ...said, reasoning: said["reasoning_content"] } : said,
    ),
  },
  {
    name: "writes reasoning as a list of details",
    vendors: "OpenRouter",
    source: "https://openrouter.ai/docs/use-cases/reasoning-tokens",
    about: "reasoning",
    ...everyMessage((said) =>
      said["reasoning_content"]
        ? {
            ...without(said, "reasoning_content"),
            reasoning_details: [
              { type: "reasoning.text", text: said["reasoning_content"], index: 0, format: "x" },
            ],
          }
        : said,
    ),
  },
  {
    name: "writes reasoning as a part of the content",
    vendors: "Mistral",
    source: "symfony/ai#2422",
    about: "content",
    ...everyMessage((said) => {
      const { reasoning_content: thoughts, content } = said;
      if (!thoughts) return said;
      return {
        ...without(said, "reasoning_content"),
        content: [
          { type: "thinking", thinking: [{ type: "text", text: thoughts }] },
          ...(content ? [{ type: "text", text: content }] : []),
        ],
      };
    }),
  },
  {
    name: "writes reasoning as a summary in the content",
    vendors: "Databricks",
    source: "databricks/appkit#559",
    about: "content",
    ...everyMessage((said) => {
      const { reasoning_content: thoughts, content } = said;
      if (!thoughts) return said;
      return {
        ...without(said, "reasoning_content"),
        content: [
          { type: "reasoning", summary: [{ type: "summary_text", text: thoughts }] },
          ...(content ? [{ type: "text", text: content }] : []),
        ],
      };
    }),
  },
  {
    name: "sends the last of the reasoning and the first of the text in one chunk",
    vendors: "DeepSeek behind vLLM",
    source: "BerriAI/litellm#36327",
    about: "chunks",
    suits: ({ reasoning, text }) => reasoning !== "" && text !== "",
    stream(events) {
      const deltaOf = (event: Json | undefined): Json => event?.["choices"]?.[0]?.delta ?? {};
      const at = events.findLastIndex((event) => deltaOf(event)["reasoning_content"]);
      const [one, next] = [events[at], events[at + 1]];
      if (one === undefined || !deltaOf(next)["content"]) return events;
      const delta = { ...deltaOf(next), reasoning_content: deltaOf(one)["reasoning_content"] };
      const joined = { ...one, choices: [{ ...one["choices"][0], delta }] };
      return [...events.slice(0, at), joined, ...events.slice(at + 2)];
    },
  },
  {
    name: "writes a call as function_call",
    vendors: "old servers",
    source: "farion1231/cc-switch#4158",
    about: "function_call",
    suits: (of) => hasFunctions(of) && of.calls.length === 1,
    ...everyMessage((said) =>
      said["tool_calls"]?.[0]?.function === undefined
        ? said
        : {
            ...without(said, "tool_calls"),
            function_call: without(said["tool_calls"][0].function, "type"),
          },
    ),
  },
  {
    name: "gives all calls index 0",
    vendors: "Gemini behind compatible endpoints, Ollama",
    source: "agno-agi/agno#8879",
    about: "index",
    suits: hasCalls,
    ...everyCall((call) => ({ ...call, index: 0 })),
  },
  {
    name: "gives the heads of calls index 0 and their inputs the right one",
    vendors: "Gemini behind compatible endpoints",
    source: "agno-agi/agno#8879",
    about: "index",
    suits: hasFunctions,
    stream: deltas(calls((call) => ({ ...call, index: isHead(call) ? 0 : call["index"] }))),
  },
  {
    name: "counts calls from 1",
    vendors: "Anthropic behind proxies",
    source: "pipecat-ai/pipecat#4987",
    about: "index",
    suits: hasCalls,
    ...everyCall((call) => ({ ...call, index: (call["index"] ?? 0) + 1 })),
  },
  {
    name: "gives calls no index",
    vendors: "Gemini's endpoint, Mistral",
    source: "LibreChat-AI/agents#260",
    about: "index",
    suits: hasCalls,
    ...everyCall((call) => without(call, "index")),
  },
  {
    name: "sends whole calls without ids, all with index 0",
    vendors: "Ollama, llama.cpp",
    source: "huggingface/smolagents#1569",
    about: ["index", "input", "heads"],
    // Empty arguments may also be followed by the real ones.
    suits: (of) => hasFunctions(of) && of.calls.every(({ input }) => input !== "{}"),
    stream: (events) =>
      deltas(calls((call) => ({ ...without(call, "id"), index: 0 })))(wholeCalls(events)),
    whole: wholeMessage(calls((call) => without(call, "id"))),
  },
  {
    name: "gives calls empty ids",
    vendors: "Gemini's endpoint, Ollama",
    source: "LibreChat-AI/agents#260",
    about: "index",
    suits: hasCalls,
    ...everyCall((call) => (isHead(call) ? { ...call, id: "" } : call)),
  },
  {
    name: "repeats id and name in every delta of a call",
    vendors: "vLLM with GLM",
    source: "vllm-project/vllm#44098",
    about: "index",
    suits: hasCalls,
    stream(events, { calls: all }) {
      const ids = all.map(({ id, name, isCustom }) => ({ id, name, isCustom }));
      return deltas(
        calls((call) => {
          const known = ids[call["index"]];
          if (known === undefined) return call;
          const form = known.isCustom ? "custom" : "function";
          return { ...call, id: known.id, [form]: { ...call[form], name: known.name } };
        }),
      )(events);
    },
  },
  {
    name: "sends id and name empty in later deltas of a call",
    vendors: "Qwen",
    source: "QwenLM/Qwen-Agent#943",
    about: "heads",
    suits: hasFunctions,
    stream: deltas(
      calls((call) =>
        isHead(call)
          ? call
          : { ...call, id: "", type: "function", function: { name: "", ...call["function"] } },
      ),
    ),
  },
  {
    name: "sends id and name null in later deltas of a call",
    vendors: "vLLM, Qwen",
    source: "QwenLM/Qwen-Agent#943",
    about: "heads",
    suits: hasFunctions,
    stream: deltas(
      calls((call) =>
        isHead(call)
          ? call
          : { ...call, id: null, type: null, function: { name: null, ...call["function"] } },
      ),
    ),
  },
  {
    name: "sends the name of a call in a later delta",
    vendors: "vLLM with Command A, MiniMax",
    source: "vercel/ai#16507",
    about: ["heads", "input"],
    suits: hasFunctions,
    stream: splitCalls((call) =>
      isHead(call)
        ? [
            { ...call, function: { name: "", arguments: "" } },
            { ...call, function: { ...call["function"], arguments: "" } },
            { ...without(call, "id"), function: { arguments: inputOf(call) } },
          ]
        : [call],
    ),
  },
  {
    name: "sends the id of a call behind its name",
    vendors: "vLLM",
    source: "jjang-ai/vmlx#244",
    about: ["heads", "index"],
    suits: hasFunctions,
    stream: splitCalls((call) =>
      isHead(call) ? [without(call, "id"), { index: call["index"], id: call["id"] }] : [call],
    ),
  },
  {
    name: "sends an empty object before the arguments",
    vendors: "Bedrock and Gemini behind proxies",
    source: "openai/openai-agents-js#712",
    about: "input",
    suits: hasFunctions,
    stream: splitCalls((call) =>
      isHead(call) && inputOf(call) === ""
        ? [{ ...call, function: { ...call["function"], arguments: "{}" } }]
        : [call],
    ),
  },
  {
    name: "sends a call in one piece",
    vendors: "Gemini's endpoint, Mistral",
    source: "LibreChat-AI/agents#260",
    about: "input",
    suits: hasCalls,
    stream: wholeCalls,
  },
  {
    name: "sends the whole arguments of a call again behind its pieces",
    vendors: "vLLM with xLAM",
    source: "vllm-project/vllm#51697",
    about: ["index", "last chunk", "input"],
    suits: hasFunctions,
    stream: (events, { calls: all }) =>
      editLast(events, isEnd, (event) => [
        ...all.map(({ id, name, input }, index) =>
          withCall(
            { ...event, choices: [{ index: 0, delta: {}, finish_reason: null }] },
            { index, id, type: "function", function: { name, arguments: input } },
          ),
        ),
        event,
      ]),
  },
  {
    name: "writes arguments as an object",
    vendors: "llama.cpp",
    source: "ggml-org/llama.cpp#20198",
    about: "input",
    suits: hasFunctions,
    stream: (events) => deltas(calls(argumentsAsObject))(wholeCalls(events)),
    whole: wholeMessage(calls(argumentsAsObject)),
  },
  {
    name: "writes no arguments where they are empty",
    vendors: "vLLM, Anthropic behind proxies",
    source: "openai/openai-python#3502",
    about: "input",
    suits: (of) => hasFunctions(of) && of.calls.every(({ input }) => input === "{}"),
    stream: (events) =>
      deltas(calls((call) => ({ ...call, function: { ...call["function"], arguments: "" } })))(
        wholeCalls(events),
      ),
    whole: wholeMessage(
      calls((call) => ({ ...call, function: { ...call["function"], arguments: "" } })),
    ),
  },
  {
    name: "writes null as the arguments of a call without any",
    vendors: "vLLM, MCP proxies",
    source: "Wei-Shaw/sub2api#2826",
    about: "input",
    suits: (of) => hasFunctions(of) && of.calls.every(({ input }) => input === "{}"),
    stream: (events) =>
      deltas(calls((call) => ({ ...call, function: { ...call["function"], arguments: "null" } })))(
        wholeCalls(events),
      ),
    whole: wholeMessage(
      calls((call) => ({ ...call, function: { ...call["function"], arguments: "null" } })),
    ),
  },
  {
    name: "sends empty text between the deltas of calls",
    vendors: "vLLM, SGLang",
    source: "agentgateway/agentgateway#2147",
    suits: hasCalls,
    stream: (events) =>
      events.flatMap((event) =>
        event["choices"]?.[0]?.delta?.tool_calls === undefined
          ? [event]
          : [
              event,
              { ...event, choices: [{ index: 0, delta: { content: "" }, finish_reason: null }] },
            ],
      ),
  },
  {
    name: "interleaves the pieces of parallel calls",
    vendors: "Qwen, Kimi",
    source: "QwenLM/Qwen-Agent#943",
    about: ["input", "index", "no calls"],
    suits: hasCalls,
    stream(events) {
      const isCall = (event: Json): boolean =>
        event["choices"]?.[0]?.delta?.tool_calls?.[0] !== undefined;
      const of = events.filter(isCall);
      if (of.length === 0) return events;
      const lanes = Map.groupBy(of, (event) => event["choices"][0].delta.tool_calls[0].index);
      const most = Math.max(...[...lanes.values()].map(({ length }) => length));
      const mixed = Array.from({ length: most }, (_, at) =>
        [...lanes.values()].flatMap((lane) => lane.slice(at, at + 1)),
      ).flat();
      const first = events.findIndex(isCall);
      const others = events.filter((event) => !isCall(event));
      return [...others.slice(0, first), ...mixed, ...others.slice(first)];
    },
  },
  {
    name: "ends a reply with calls by stop",
    vendors: "SGLang, mlx-vlm, OpenAI at times",
    source: "sgl-project/sglang#2877",
    about: "reason",
    suits: hasCalls,
    stream: choices((choice) =>
      choice["finish_reason"] === "tool_calls" ? { ...choice, finish_reason: "stop" } : choice,
    ),
    whole: (reply) => ({ ...reply, choices: [{ ...reply["choices"][0], finish_reason: "stop" }] }),
  },
  {
    name: "tells no finish reason, only [DONE]",
    vendors: "Evolink, Gemini behind proxies",
    source: "openclaw/openclaw#98575",
    about: "end mark",
    suits: ({ ending }) => ending === "usual",
    stream: choices((choice) => ({ ...choice, finish_reason: null })),
  },
  {
    name: "ends a text by tool_calls",
    vendors: "OpenCode Zen, GLM",
    source: "jasonxu114514/opencode2api#27",
    about: "reason",
    suits: (of) => !hasCalls(of) && of.ending === "usual" && of.text !== "",
    stream: choices((choice) =>
      choice["finish_reason"] === "stop" ? { ...choice, finish_reason: "tool_calls" } : choice,
    ),
    whole: (reply) => ({
      ...reply,
      choices: [{ ...reply["choices"][0], finish_reason: "tool_calls" }],
    }),
  },
  {
    name: "ends in words of Anthropic",
    vendors: "proxies of Anthropic",
    source: "can1357/oh-my-pi#12224",
    about: "reason",
    ...reasons({ stop: "end_turn", tool_calls: "tool_use", length: "max_tokens" }),
  },
  {
    name: "ends in words of its own",
    vendors: "Hugging Face, Mistral, old servers",
    source: "https://huggingface.co/docs/api-inference/tasks/chat-completion",
    about: "reason",
    ...reasons({ stop: "eos", tool_calls: "function_call", length: "model_length" }),
  },
  {
    name: "writes an empty finish reason in every chunk",
    vendors: "LocalAI",
    source: "mudler/LocalAI#1886",
    stream: choices((choice) => ({ ...choice, finish_reason: choice["finish_reason"] ?? "" })),
  },
  {
    name: "repeats the last chunk",
    vendors: "proxies",
    source: "OpenSecretCloud/opensecret#219",
    about: "last chunk",
    stream: (events) => editLast(events, isEnd, (event) => [event, event]),
  },
  {
    name: "sends no delta in the last chunk",
    vendors: "compatible proxies",
    source: "maximhq/bifrost#5878",
    about: "last chunk",
    stream: (events) =>
      editLast(events, isEnd, (event) => [
        { ...event, choices: [without(event["choices"][0], "delta")] },
      ]),
  },
  {
    name: "sends delta null in the last chunk",
    vendors: "Azure",
    source: "microsoft/agent-framework#5734",
    about: "last chunk",
    stream: (events) =>
      editLast(events, isEnd, (event) =>
        event["choices"][0].message == null
          ? [{ ...event, choices: [{ ...event["choices"][0], delta: null }] }]
          : [event],
      ),
  },
  {
    name: "sends the last text in the last chunk",
    vendors: "vLLM, one-hub",
    source: "vllm-project/vllm#36944",
    about: "last chunk",
    stream(events) {
      const at = events.findIndex(isEnd);
      const [before, end] = [events[at - 1], events[at]];
      const [choice] = before?.["choices"] ?? [];
      if (choice?.delta === undefined) return events;
      const { delta } = choice;
      const joined = { ...choice, ...end?.["choices"][0], delta };
      return [
        ...events.slice(0, at - 1),
        { ...before, ...end, choices: [joined] },
        ...events.slice(at + 1),
      ];
    },
  },
  {
    name: "sends the last arguments in the last chunk, with id and name",
    vendors: "vLLM with GLM",
    source: "vllm-project/vllm#44098",
    about: ["index", "last chunk"],
    suits: hasFunctions,
    stream(events, { calls: all }) {
      const at = events.findIndex(isEnd);
      const [before, end] = [events[at - 1], events[at]];
      const [call] = before?.["choices"]?.[0]?.delta?.tool_calls ?? [];
      const known = all[call?.index];
      if (known === undefined || end?.["choices"][0].message !== undefined) return events;
      const whole = {
        ...call,
        id: known.id,
        type: "function",
        function: { name: known.name, ...call.function },
      };
      const choice = { ...end?.["choices"][0], delta: { tool_calls: [whole] } };
      return [...events.slice(0, at - 1), { ...end, choices: [choice] }, ...events.slice(at + 1)];
    },
  },
  {
    name: "sends chunks without a delta between the others",
    vendors: "Azure",
    source: "run-llama/LlamaIndexTS#2108",
    stream: (events) =>
      events.flatMap((event) =>
        isEnd(event)
          ? [{ ...event, choices: [{ index: 0, finish_reason: null, logprobs: null }] }, event]
          : [event],
      ),
  },
  {
    name: "writes choices as null where there is none",
    vendors: "compatible vendors",
    source: "pydantic/pydantic-ai#5165",
    stream: (events) =>
      events.map((event) => (event["choices"]?.length === 0 ? { ...event, choices: null } : event)),
  },
  {
    name: "sends chunks without choices, with filter results, at any place",
    vendors: "Azure",
    source: "microsoft/autogen#6465",
    stream(events) {
      const filter = { id: "", object: "", created: 0, model: "", choices: [] };
      const results = { ...filter, prompt_filter_results: [{ prompt_index: 0 }] };
      return [results, ...events.flatMap((event) => (isEnd(event) ? [event, filter] : [event]))];
    },
  },
  {
    name: "writes error null in every chunk",
    vendors: "proxies",
    source: "QuantumNous/new-api#5289",
    about: "error",
    stream: (events) => events.map((event) => ({ ...event, error: null, base_resp: null })),
    whole: (reply) => ({ ...reply, error: null }),
  },
  {
    name: "leaves out id, object and created",
    vendors: "small servers",
    source: "huggingface/smolagents#1569",
    about: "head",
    stream: (events) => events.map((event) => without(event, "id", "object", "created")),
    whole: (reply) => without(reply, "id", "object", "created"),
  },
  {
    name: "writes id and object null, and created as text",
    vendors: "proxies",
    source: "smallmain/vscode-unify-chat-provider#71",
    about: "head",
    stream: (events) =>
      events.map((event) => ({ ...event, id: null, object: null, created: "1700000000" })),
    whole: (reply) => ({ ...reply, id: null, object: null, created: "1700000000" }),
  },
  {
    name: "leaves out the index of the choice",
    vendors: "proxies",
    source: "smallmain/vscode-unify-chat-provider#71",
    stream: choices((choice) => without(choice, "index")),
    whole: (reply) => ({ ...reply, choices: [without(reply["choices"][0], "index")] }),
  },
  {
    name: "sends no [DONE]",
    vendors: "ik_llama.cpp, GMI",
    source: "ikawrakow/ik_llama.cpp#467",
    about: "end mark",
    streamText: (text) => text.replace(/data: ?\[DONE\]\s*$/, ""),
  },
  {
    name: "sends [DONE] twice",
    vendors: "proxies of proxies",
    source: "Dstack-TEE/private-ai-gateway#114",
    about: "end mark",
    streamText: (text) => `${text.trimEnd()}\n\ndata: [DONE]\n\n`,
  },
  {
    name: "reports usage in the last chunk with a choice",
    vendors: "DeepSeek, Groq, Mistral",
    source: "OpenSecretCloud/opensecret#219",
    about: "usage place",
    stream: (events) => withUsage(events, (event, report) => ({ ...event, usage: report })),
  },
  {
    name: "reports usage in the choice",
    vendors: "Moonshot",
    source: "https://platform.moonshot.ai/docs/api/chat",
    about: "usage place",
    stream: (events) =>
      withUsage(events, (event, report) => ({
        ...event,
        choices: [{ ...event["choices"][0], usage: report }],
      })),
  },
  {
    name: "reports usage in x_groq",
    vendors: "Groq",
    source: "https://console.groq.com/docs/api-reference",
    about: "usage place",
    stream: (events) =>
      withUsage(events, (event, report) => ({ ...event, x_groq: { id: "req_1", usage: report } })),
  },
  {
    name: "reports usage behind a chunk without choices",
    vendors: "vLLM behind proxies",
    source: "OpenSecretCloud/opensecret#219",
    about: "usage place",
    stream: (events) =>
      editLast(events, isUsage, (event) => [
        { ...event, usage: null },
        without(event, "usage"),
        event,
      ]),
  },
  {
    name: "reports usage in every chunk, as far as it has come",
    vendors: "vLLM with continuous_usage_stats, xAI",
    source: "https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html",
    about: "usage place",
    stream(events) {
      const report = events.find(isUsage)?.["usage"];
      return events.map((event, at) =>
        isUsage(event) || report === undefined
          ? event
          : {
              ...event,
              usage: {
                ...report,
                completion_tokens: Math.min(at, report.completion_tokens),
                total_tokens: report.prompt_tokens + Math.min(at, report.completion_tokens),
                completion_tokens_details: { reasoning_tokens: 0 },
              },
            },
      );
    },
  },
  {
    name: "reports usage 0 at the start",
    vendors: "GLM",
    source: "zai-org/GLM-5#139",
    about: "usage more",
    stream([first, ...events]) {
      const zero = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
      return [{ ...first, usage: zero }, ...events];
    },
  },
  {
    name: "reports usage 0 in every chunk with a choice",
    vendors: "LocalAI",
    source: "mudler/LocalAI#1886",
    about: "usage place",
    stream: (events) =>
      events.map((event) =>
        isUsage(event)
          ? event
          : { usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }, ...event },
      ),
  },
  {
    name: "changes the id from chunk to chunk",
    vendors: "Copilot",
    source: "duolahypercho/codex-router#814",
    about: "head",
    stream: (events) => events.map((event, at) => ({ ...event, id: `chatcmpl-${at}` })),
  },
  {
    name: "reports usage 0 behind the usage",
    vendors: "proxies of Bedrock",
    source: "CopilotKit/CopilotKit#2468",
    about: "usage more",
    stream: (events) => [
      ...events,
      { choices: [], usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 } },
    ],
  },
  {
    name: "reports usage without details or with null ones",
    vendors: "MiniMax, many",
    source: "MiniMax-AI/MiniMax-M2.5#2",
    about: "usage form",
    suits: ({ tokens: { cached, written, reasoning } }) => cached + written + reasoning === 0,
    ...usage((report) => ({
      ...report,
      prompt_tokens_details: null,
      completion_tokens_details: null,
    })),
  },
  {
    name: "reports cached and written tokens under the names of Anthropic",
    vendors: "LiteLLM, OneAPI before Claude",
    source: "BerriAI/litellm#39505",
    about: "usage form",
    ...usage((report) => {
      const { cached_tokens: cached, cache_write_tokens: written } =
        report["prompt_tokens_details"] ?? {};
      return {
        ...report,
        prompt_tokens_details: { cached_tokens: 0 },
        cache_read_input_tokens: cached ?? 0,
        cache_creation_input_tokens: written ?? 0,
      };
    }),
  },
  {
    name: "reports cached tokens beside the details",
    vendors: "Moonshot, Z.AI",
    source: "https://platform.moonshot.ai/docs/api/chat",
    about: "usage form",
    suits: ({ tokens: { written } }) => written === 0,
    ...usage((report) => ({
      ...report,
      prompt_tokens_details: undefined,
      cached_tokens: report["prompt_tokens_details"]?.cached_tokens ?? 0,
    })),
  },
  {
    name: "reports cached tokens as hits and misses",
    vendors: "DeepSeek",
    source: "https://api-docs.deepseek.com/guides/kv_cache",
    about: "usage form",
    suits: ({ tokens: { written } }) => written === 0,
    ...usage((report) => {
      const cached = report["prompt_tokens_details"]?.cached_tokens ?? 0;
      return {
        ...report,
        prompt_tokens_details: undefined,
        prompt_cache_hit_tokens: cached,
        prompt_cache_miss_tokens: report["prompt_tokens"] - cached,
      };
    }),
  },
  {
    name: "shows hidden reasoning only in the total",
    vendors: "Gemini's endpoint",
    source: "Clarifai/clarifai-python#978",
    about: "usage form",
    // The surplus of the total is cached input, if it equals that count.
    suits: ({ tokens: { cached, written, reasoning } }) => cached + written === 0 && reasoning > 0,
    ...usage((report) => ({
      ...report,
      completion_tokens:
        report["completion_tokens"] - (report["completion_tokens_details"]?.reasoning_tokens ?? 0),
      completion_tokens_details: undefined,
    })),
  },
  {
    name: "reports reasoning beside the completion",
    vendors: "xAI",
    source: "router-for-me/CLIProxyAPI#5733",
    about: "usage form",
    // The surplus of the total is cached input, if it equals that count.
    suits: ({ tokens: { cached, written, reasoning } }) => cached + written === 0 && reasoning > 0,
    ...usage((report) => ({
      ...report,
      completion_tokens:
        report["completion_tokens"] - (report["completion_tokens_details"]?.reasoning_tokens ?? 0),
    })),
  },
  {
    name: "reports no total",
    vendors: "MiniMax, small servers",
    source: "MiniMax-AI/MiniMax-M2.5#2",
    about: "usage form",
    ...usage((report) => without(report, "total_tokens")),
  },
  {
    name: "adds members that no style knows",
    vendors: "all",
    source: "microsoft/autogen#6465",
    stream: (events) =>
      events.map((event) => ({
        ...event,
        provider: "x",
        service_tier: null,
        system_fingerprint: "",
        x_nested: { delta: { content: "no" }, usage: { prompt_tokens: 9 } },
      })),
    whole: (reply) => ({ ...reply, provider: "x", x_nested: { message: { content: "no" } } }),
  },
];

function argumentsAsObject(call: Json): Json {
  const { function: called } = call;
  try {
    return { ...call, function: { ...called, arguments: parseExactly(called.arguments) } };
  } catch {
    // Another quirk has left the pieces apart.
    return call;
  }
}

function reasons(words: Readonly<Record<string, string>>): Pick<Quirk, "stream" | "whole"> {
  const edit: Edit = (choice) => ({
    ...choice,
    finish_reason: words[choice["finish_reason"]] ?? choice["finish_reason"],
  });
  return {
    stream: choices(edit),
    whole: (reply) => ({ ...reply, choices: [edit(reply["choices"][0])] }),
  };
}
