/** Gemini CLI: Gemini's own API, below the vendor's prefix, streamed. */
import { type Agent, type Cli, jsonLines, textAt } from "./agent.ts";

const cli: Cli = { package: "@google/gemini-cli", version: "0.61.0", program: "gemini" };

export const geminiCliAgents: readonly Agent[] = [
  {
    name: "gemini cli",
    cli,
    reasons: false,
    vendors: ["gemini"],
    settings: () => ({
      ".gemini/settings.json": JSON.stringify({
        security: { auth: { selectedType: "gemini-api-key" } },
        privacy: { usageStatisticsEnabled: false },
        telemetry: { enabled: false },
        general: { disableAutoUpdate: true },
      }),
    }),
    ask: ({ origin, key, model }) => ({
      args: ["--yolo", "--skip-trust", "--output-format", "stream-json", "--model", model.key],
      env: { GOOGLE_GEMINI_BASE_URL: `${origin}/gemini`, GEMINI_API_KEY: key },
    }),
    callOf: (command) => ({ tool: "run_shell_command", arguments: { command } }),
    answerOf: (output) => {
      const texts = jsonLines(output)
        .filter((line) => line["type"] === "message" && line["role"] === "assistant")
        .map((line) => textAt(line, "content") ?? "");
      return texts.length === 0 ? undefined : texts.join("");
    },
  },
];
