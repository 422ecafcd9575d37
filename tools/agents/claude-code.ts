/** Claude Code: messages style with beta members, streamed. */
import { type Agent, type Cli, jsonLines, textAt } from "./agent.ts";

const cli: Cli = { package: "@anthropic-ai/claude-code", version: "2.1.329", program: "claude" };

/** With each of the two variables for a key: one is sent as a bearer, the other as `x-api-key`. */
export const claudeCodeAgents: readonly Agent[] = [
  claudeCode("claude code", "ANTHROPIC_AUTH_TOKEN"),
  claudeCode("claude code, x-api-key", "ANTHROPIC_API_KEY"),
];

function claudeCode(name: string, keyVariable: string): Agent {
  return {
    name,
    cli,
    reasons: true,
    settings: () => ({}),
    ask: ({ origin, key, model }) => ({
      args: ["-p", "--output-format", "json", "--allowedTools", "Bash"],
      env: {
        ANTHROPIC_BASE_URL: origin,
        [keyVariable]: key,
        ANTHROPIC_MODEL: model.key,
        ANTHROPIC_DEFAULT_HAIKU_MODEL: model.key,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
        CLAUDE_CODE_MAX_RETRIES: "0",
      },
    }),
    callOf: (command) => ({ tool: "Bash", arguments: { command } }),
    answerOf: (output) =>
      jsonLines(output)
        .filter((line) => line["is_error"] === false)
        .map((line) => textAt(line, "result"))
        .at(-1),
  };
}
