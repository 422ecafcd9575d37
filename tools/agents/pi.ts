/** pi: any style, by the API that its provider names. */
import { type Agent, type Cli, jsonLines, textAt } from "./agent.ts";

const cli: Cli = { package: "@earendil-works/pi-coding-agent", version: "0.87.1", program: "pi" };

/** With each API that it speaks. */
export const piAgents: readonly Agent[] = [
  pi("pi, chat", "openai-completions", "/v1"),
  pi("pi, responses", "openai-responses", "/v1"),
  pi("pi, messages", "anthropic-messages", ""),
  // It does not send the signatures of Gemini's thoughts back.
  {
    ...pi("pi, gemini", "google-generative-ai", "/gemini/v1beta"),
    reasons: false,
    vendors: ["gemini"],
  },
];

/** Claude models decide themselves how much they think. The other APIs do not have the member. */
const compat = { forceAdaptiveThinking: true };

function pi(name: string, api: string, path: string): Agent {
  return {
    name,
    cli,
    reasons: true,
    settings: ({ origin, key, model }) => ({
      ".pi/agent/models.json": JSON.stringify({
        providers: {
          uas: {
            api,
            baseUrl: `${origin}${path}`,
            apiKey: key,
            models: [{ id: model.key, reasoning: true, input: ["text"], compat }],
          },
        },
      }),
    }),
    ask: ({ model }) => ({
      args: ["--print", "--mode", "json", "--provider", "uas", "--model", model.key],
      env: { PI_OFFLINE: "1" },
    }),
    callOf: (command) => ({ tool: "bash", arguments: { command } }),
    answerOf: (output) =>
      jsonLines(output)
        .filter((line) => line["type"] === "message_end")
        .filter((line) => textAt(line, "message", "role") === "assistant")
        .map((line) => lastText(line["message"]))
        .at(-1),
  };
}

/** The last text of a message. */
function lastText(message: unknown): string | undefined {
  const { content } = message as { readonly content?: unknown };
  const parts: readonly unknown[] = Array.isArray(content) ? content : [];
  return parts
    .filter((part) => textAt(part, "type") === "text")
    .map((part) => textAt(part, "text"))
    .at(-1);
}
