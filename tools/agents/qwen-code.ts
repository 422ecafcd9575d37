/** Qwen Code: chat completions, streamed. */
import { type Agent, type Cli, jsonLines, textAt } from "./agent.ts";

const cli: Cli = { package: "@qwen-code/qwen-code", version: "0.24.4", program: "qwen" };

export const qwenCodeAgents: readonly Agent[] = [
  {
    name: "qwen code",
    cli,
    reasons: false,
    settings: () => ({
      ".qwen/settings.json": JSON.stringify({
        security: { auth: { selectedType: "openai" } },
        privacy: { usageStatisticsEnabled: false },
        telemetry: { enabled: false },
        general: { enableAutoUpdate: false },
      }),
    }),
    ask: ({ origin, key, model }) => ({
      args: ["--yolo", "--output-format", "stream-json"],
      env: {
        OPENAI_BASE_URL: `${origin}/v1`,
        OPENAI_API_KEY: key,
        OPENAI_MODEL: model.key,
      },
    }),
    callOf: (command) => ({ tool: "run_shell_command", arguments: { command } }),
    answerOf: (output) =>
      jsonLines(output)
        .filter((line) => line["type"] === "result" && line["is_error"] === false)
        .map((line) => textAt(line, "result"))
        .at(-1),
  },
];
