/** Cline: chat completions or messages, by the provider that it is given. */
import { type Agent, type Cli, jsonLines, textAt } from "./agent.ts";

const cli: Cli = { package: "cline", version: "3.0.65", program: "cline" };

/**
 * One agent for each usable provider: `openai-native` requests images every time, whatever its
 * settings.
 */
export const clineAgents: readonly Agent[] = [
  cline("cline, chat", "openai-compatible"),
  cline("cline, messages", "anthropic"),
];

function cline(name: string, provider: string): Agent {
  return {
    name,
    cli,
    reasons: false,
    settings: ({ origin, key, model }) => ({
      // The models here have no price for searches of the web.
      ".cline/data/settings/global-settings.json": JSON.stringify({
        autoUpdateEnabled: false,
        telemetryOptOut: true,
        tools: { web_search: { enabled: false } },
      }),
      ".cline/data/settings/providers.json": JSON.stringify({
        version: 1,
        lastUsedProvider: provider,
        modes: {},
        providers: {
          [provider]: {
            settings: { provider, apiKey: key, model: model.key, baseUrl: `${origin}/v1` },
            updatedAt: new Date(0).toISOString(),
            tokenSource: "manual",
          },
        },
      }),
    }),
    ask: ({ model }) => ({
      args: ["--json", "--provider", provider, "--model", model.key],
      isPromptArgument: true,
      // Otherwise it starts a hub, a process in a separate group that outlives it.
      env: { CLINE_SESSION_BACKEND_MODE: "local" },
    }),
    callOf: (command) => ({ tool: "run_commands", arguments: { commands: [command] } }),
    answerOf: (output) =>
      jsonLines(output)
        .filter((line) => line["type"] === "run_result" && line["finishReason"] === "completed")
        .map((line) => textAt(line, "text"))
        .at(-1),
  };
}
