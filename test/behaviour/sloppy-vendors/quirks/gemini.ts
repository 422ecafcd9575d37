/** Quirks of vendors in Gemini's style. */
import type { Json } from "../vendor-reply.ts";
import { editLast, hasCalls, type Quirk, without } from "./quirk.ts";

/** Changes whole replies, and every chunk. */
function chunks(edit: (chunk: Json) => Json): Pick<Quirk, "stream" | "whole"> {
  return { whole: edit, stream: (events) => events.map(edit) };
}

/** Changes the candidate of each chunk that has one. */
function candidates(edit: (candidate: Json) => Json) {
  return chunks((chunk) =>
    chunk["candidates"]?.[0] === undefined
      ? chunk
      : { ...chunk, candidates: [edit(chunk["candidates"][0])] },
  );
}

/** Changes the parts of each candidate. */
function parts(edit: (part: Json) => readonly Json[]) {
  return candidates((candidate) =>
    candidate["content"]?.parts === undefined
      ? candidate
      : {
          ...candidate,
          content: { ...candidate["content"], parts: candidate["content"].parts.flatMap(edit) },
        },
  );
}

/** Changes usage wherever it is. */
function usage(edit: (counts: Json) => Json) {
  return chunks((chunk) =>
    chunk["usageMetadata"] == null
      ? chunk
      : { ...chunk, usageMetadata: edit(chunk["usageMetadata"]) },
  );
}

const isEnd = (event: Json): boolean =>
  /^(?:STOP|MAX_TOKENS)$/.test(event["candidates"]?.[0]?.finishReason ?? "");
const isThought = (part: Json): boolean => part["thought"] === true;

export const geminiQuirks: readonly Quirk[] = [
  {
    name: "sends all parts in one chunk",
    vendors: "Gemini, proxies that do not stream",
    source: "vercel/ai#20008",
    about: "chunks",
    stream(events) {
      const all = events.flatMap((event) => event["candidates"]?.[0]?.content?.parts ?? []);
      return editLast(events, isEnd, (event) => [
        {
          ...event,
          candidates: [{ ...event["candidates"][0], content: { role: "model", parts: all } }],
        },
      ]).filter(
        (event, at, changed) =>
          event["candidates"]?.[0] === undefined || at === changed.findLastIndex(isEnd),
      );
    },
  },
  {
    name: "repeats the finish reason in every chunk",
    vendors: "Gemini 1.5, one-hub",
    source: "MartialBE/one-hub#402",
    about: "reason",
    stream(events) {
      const reason = events.findLast(isEnd)?.["candidates"][0].finishReason;
      return events.map((event) =>
        event["candidates"]?.[0] === undefined
          ? event
          : { ...event, candidates: [{ ...event["candidates"][0], finishReason: reason }] },
      );
    },
  },
  {
    name: "begins with empty chunks that are finished already",
    vendors: "CLIProxyAPI",
    source: "router-for-me/CLIProxyAPI#5651",
    about: "reason",
    stream([first = {}, ...events]) {
      const empty = {
        candidates: [{ content: { role: "model", parts: [] }, finishReason: "STOP", index: 0 }],
      };
      return [{ ...without(first, "candidates"), ...empty }, empty, first, ...events];
    },
  },
  {
    name: "writes an unspecified finish reason in every other chunk",
    vendors: "Vertex AI",
    source: "strands-agents/sdk-typescript#717",
    about: "reason",
    stream: (events) =>
      events.map((event) =>
        event["candidates"]?.[0] === undefined || event["candidates"][0].finishReason
          ? event
          : {
              ...event,
              candidates: [
                { ...event["candidates"][0], finishReason: "FINISH_REASON_UNSPECIFIED" },
              ],
            },
      ),
  },
  {
    name: "writes finishReason null and safety ratings in every chunk",
    vendors: "proxies of chat completions",
    source: "router-for-me/CLIProxyAPI#5640",
    about: "reason",
    ...candidates((candidate) => ({
      finishReason: null,
      safetyRatings: [{ category: "HARM_CATEGORY_HARASSMENT", probability: "NEGLIGIBLE" }],
      ...candidate,
    })),
  },
  {
    name: "ends by a chunk without content",
    vendors: "Gemini",
    source: "agentjido/req_llm#638",
    about: "chunks",
    stream: (events) =>
      editLast(events, isEnd, (event) => [
        { ...event, candidates: [without(event["candidates"][0], "content")] },
      ]),
  },
  {
    name: "ends by a chunk whose content has no parts",
    vendors: "Gemini",
    source: "pydantic/pydantic-ai#2631",
    about: "chunks",
    stream: (events) =>
      editLast(events, isEnd, (event) => [
        { ...event, candidates: [{ ...event["candidates"][0], content: { role: "model" } }] },
      ]),
  },
  {
    name: "reports usage in a chunk of its own",
    vendors: "proxies of chat completions",
    source: "router-for-me/CLIProxyAPI#5640",
    about: "usage place",
    stream: (events) =>
      events.flatMap((event) =>
        event["usageMetadata"] == null
          ? [event]
          : [without(event, "usageMetadata"), without(event, "candidates")],
      ),
  },
  {
    name: "reports usage in every chunk, as far as it has come",
    vendors: "Gemini",
    source: "agentjido/req_llm#638",
    about: "usage place",
    stream(events) {
      const counts = events.at(-1)?.["usageMetadata"];
      if (counts == null) return events;
      const soFar = {
        promptTokenCount: counts.promptTokenCount,
        totalTokenCount: counts.promptTokenCount,
      };
      return events.map((event) => ({ usageMetadata: soFar, ...event }));
    },
  },
  {
    name: "reports 0 in an empty chunk behind the last",
    vendors: "proxies",
    source: "sgl-project/sglang#20830",
    about: "usage place",
    stream: (events) => [
      ...events,
      { usageMetadata: { promptTokenCount: 0, candidatesTokenCount: 0, totalTokenCount: 0 } },
    ],
  },
  {
    name: "leaves out counts that are 0",
    vendors: "Gemini",
    source: "agentscope-ai/agentscope-java#3033",
    about: "counts",
    ...usage((counts) =>
      Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0)),
    ),
  },
  {
    name: "shows thoughts only in the total",
    vendors: "Gemini 2.5 Pro",
    source: "Clarifai/clarifai-python#978",
    about: "counts",
    ...usage((counts) => without(counts, "thoughtsTokenCount")),
  },
  {
    name: "reports no total",
    vendors: "proxies",
    source: "MiniMax-AI/MiniMax-M2.5#2",
    about: "counts",
    ...usage((counts) => without(counts, "totalTokenCount")),
  },
  {
    name: "writes counts as text",
    vendors: "proxies that write protobuf as JSON",
    source: "https://protobuf.dev/programming-guides/json/",
    about: "count form",
    ...usage((counts) =>
      Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, String(count)])),
    ),
  },
  {
    name: "writes empty texts between the parts",
    vendors: "Gemini 3, proxies",
    source: "BerriAI/litellm#20002",
    about: "signatures",
    ...parts((part) => [part, { text: "" }]),
  },
  {
    name: "writes thought false and absent kinds as null",
    vendors: "servers in Go and Java",
    source: "microsoft/vscode#329963",
    ...parts((part) => [
      {
        thought: false,
        inlineData: null,
        functionResponse: null,
        executableCode: null,
        ...("functionCall" in part ? { text: null } : { functionCall: null }),
        ...part,
      },
    ]),
  },
  {
    name: "writes empty objects for what is absent",
    vendors: "proxies",
    source: "BerriAI/litellm#29286",
    ...parts((part) => [{ functionCall: {}, inlineData: {}, ...part }]),
  },
  {
    name: "gives calls no ids",
    vendors: "Gemini",
    source: "apache/flink-agents#947",
    about: "ids",
    suits: hasCalls,
    ...parts((part) =>
      part["functionCall"]?.id === undefined
        ? [part]
        : [{ ...part, functionCall: without(part["functionCall"], "id") }],
    ),
  },
  {
    name: "gives all calls the same id",
    vendors: "proxies",
    source: "NVIDIA-NeMo/Switchyard#502",
    about: "ids",
    suits: hasCalls,
    ...parts((part) =>
      part["functionCall"]?.id === undefined
        ? [part]
        : [{ ...part, functionCall: { ...part["functionCall"], id: "call_0abc" } }],
    ),
  },
  {
    name: "leaves out empty arguments",
    vendors: "Gemini, proxies",
    source: "openai/openai-python#3502",
    about: "args",
    suits: hasCalls,
    ...parts((part) =>
      JSON.stringify(part["functionCall"]?.args) === "{}"
        ? [{ ...part, functionCall: without(part["functionCall"], "args") }]
        : [part],
    ),
  },
  {
    name: "writes empty arguments as null",
    vendors: "proxies",
    source: "Wei-Shaw/sub2api#2826",
    about: "args",
    suits: hasCalls,
    ...parts((part) =>
      JSON.stringify(part["functionCall"]?.args) === "{}"
        ? [{ ...part, functionCall: { ...part["functionCall"], args: null } }]
        : [part],
    ),
  },
  {
    name: "sends name and arguments of a call in parts of their own",
    vendors: "Gemini with streamed arguments, proxies",
    source: "https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling",
    about: "args",
    suits: hasCalls,
    stream: (events) => {
      const split = parts((part) =>
        part["functionCall"]?.args == null
          ? [part]
          : [
              { ...part, functionCall: without(part["functionCall"], "args") },
              { functionCall: { args: part["functionCall"].args } },
            ],
      ).stream;
      return split?.(events, undefined as never) ?? events;
    },
  },
  {
    name: "signs texts and calls",
    vendors: "Gemini 3",
    source: "vercel/ai#20008",
    about: "signatures",
    ...parts((part) =>
      isThought(part) || (part["functionCall"]?.args != null && !part["functionCall"].name)
        ? [part]
        : [{ ...part, thoughtSignature: "c2ln" }],
    ),
  },
  {
    name: "signs in an empty text at the end",
    vendors: "Gemini 3",
    source: "BerriAI/litellm#20002",
    about: "signatures",
    stream: (events) =>
      editLast(events, isEnd, (event) => {
        const [candidate] = event["candidates"];
        const signed = [
          ...(candidate.content?.parts ?? []),
          { text: "", thoughtSignature: "c2ln" },
        ];
        return [
          { ...event, candidates: [{ ...candidate, content: { role: "model", parts: signed } }] },
        ];
      }),
  },
  {
    name: "leaves out index, role and ids",
    vendors: "Gemini, proxies",
    source: "agentjido/req_llm#638",
    about: "head",
    ...chunks((chunk) => ({
      ...without(chunk, "responseId", "modelVersion"),
      ...(chunk["candidates"]?.[0] !== undefined && {
        candidates: [
          {
            ...without(chunk["candidates"][0], "index"),
            ...(chunk["candidates"][0].content != null && {
              content: without(chunk["candidates"][0].content, "role"),
            }),
          },
        ],
      }),
    })),
  },
  {
    name: "writes error null in every chunk",
    vendors: "proxies",
    source: "QuantumNous/new-api#5289",
    ...chunks((chunk) => ({ ...chunk, error: null, promptFeedback: null })),
  },
  {
    name: "sends empty candidates in chunks of its own",
    vendors: "proxies",
    source: "microsoft/autogen#6465",
    stream: (events) => events.flatMap((event) => [{ candidates: [] }, event]),
  },
];
