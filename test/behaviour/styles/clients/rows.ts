/** The clients, by library. */
import { agentsChat, agentsResponses } from "./agents.ts";
import { aiChat, aiCompatible, aiMessages, aiResponses } from "./ai-sdk.ts";
import { anthropic, anthropicByHand, anthropicV0 } from "./anthropic.ts";
import type { ClientRow } from "./client.ts";
import { langchainChat, langchainMessages, langchainResponses } from "./langchain.ts";
import { openaiChat, openaiV6Chat } from "./openai-chat.ts";
import { openaiResponses, openaiV6Responses } from "./openai-responses.ts";

const newest = { temperature: "2026-10-21 has no sampling settings" };

/** The official OpenAI library. */
export const openaiRows: readonly ClientRow[] = [
  { name: "openai 7 chat", style: "chat", make: openaiChat },
  { name: "openai 6 chat", style: "chat", make: openaiV6Chat },
  { name: "openai 7 responses", style: "responses", make: openaiResponses },
  { name: "openai 6 responses", style: "responses", make: openaiV6Responses },
];

/** The official Anthropic library. */
export const anthropicRows: readonly ClientRow[] = [
  { name: "anthropic 1 toolRunner", style: "messages", make: anthropic, lacks: newest },
  { name: "anthropic 1", style: "messages", make: anthropicByHand, lacks: newest },
  { name: "anthropic 0", style: "messages", make: anthropicV0 },
];

const part = { streamCode: "an error in a stream is a part that is no error of the call" };

/** The AI SDK. */
export const aiRows: readonly ClientRow[] = [
  { name: "ai openai responses", style: "responses", make: aiResponses, lacks: part },
  {
    name: "ai openai chat",
    style: "chat",
    make: aiChat,
    lacks: {
      ...part,
      shownReasoning: "the provider does not read reasoning_content",
      reasoning: "nor does it send it back",
    },
  },
  { name: "ai openai-compatible", style: "chat", make: aiCompatible, lacks: part },
  { name: "ai anthropic", style: "messages", make: aiMessages, lacks: part },
];

/** LangChain. */
export const langchainRows: readonly ClientRow[] = [
  {
    name: "langchain openai chat",
    style: "chat",
    make: langchainChat,
    lacks: {
      refusal: "it does not show one",
      shownReasoning: "it does not read reasoning_content",
      reasoning: "nor does it send it back",
    },
  },
  { name: "langchain openai responses", style: "responses", make: langchainResponses },
  {
    name: "langchain anthropic",
    style: "messages",
    make: langchainMessages,
    lacks: { inputAtEnd: "it takes them from message_start" },
  },
];

const run = {
  finish: "a run shows no reason for its end",
  refusal: "a refusal is an empty run",
  shownReasoning: "a run shows its output only",
};

/** `@openai/agents`. */
export const agentsRows: readonly ClientRow[] = [
  {
    name: "agents responses",
    style: "responses",
    make: agentsResponses,
    lacks: { ...run, long: "it throws where a reply is incomplete" },
  },
  {
    name: "agents chat",
    style: "chat",
    make: agentsChat,
    lacks: { ...run, reasoning: "it does not send reasoning_content back" },
  },
];
