/** opencode: any of the three styles, by the AI SDK's provider of the configuration. */
import { type Agent, type Cli, jsonLines, textAt } from "./agent.ts";

const cli: Cli = { package: "opencode-ai", version: "1.18.33", program: "opencode" };

/** With each provider that it brings along. */
export const opencodeAgents: readonly Agent[] = [
  opencode("opencode, chat", "@ai-sdk/openai-compatible"),
  opencode("opencode, responses", "@ai-sdk/openai"),
  opencode("opencode, messages", "@ai-sdk/anthropic"),
];

function opencode(name: string, npm: string): Agent {
  return {
    name,
    cli,
    reasons: false,
    settings: ({ origin, key, model }) => ({
      ".config/opencode/opencode.json": JSON.stringify({
        autoupdate: false,
        model: `uas/${model.key}`,
        small_model: `uas/${model.key}`,
        provider: {
          uas: {
            npm,
            name: "UAS",
            options: { baseURL: `${origin}/v1`, apiKey: key },
            models: { [model.key]: {} },
          },
        },
      }),
    }),
    ask: () => ({ args: ["run", "--format", "json"] }),
    callOf: (command) => ({ tool: "bash", arguments: { command, description: "Runs it" } }),
    answerOf: (output) =>
      jsonLines(output)
        .filter(({ type }) => type === "text")
        .map(({ part }) => textAt(part, "text"))
        .at(-1),
  };
}
