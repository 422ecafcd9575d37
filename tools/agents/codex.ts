/** Codex: responses style, without state, streamed. */
import { type Agent, type Cli, type Command, jsonLines, textAt } from "./agent.ts";

const cli: Cli = { package: "@openai/codex", version: "0.169.0", program: "codex" };

const shared: Pick<Agent, "cli" | "reasons" | "callOf" | "answerOf"> = {
  cli,
  reasons: true,
  callOf: (command) => ({ tool: "exec_command", arguments: { cmd: command } }),
  answerOf: (output) =>
    jsonLines(output)
      .filter(({ item }) => textAt(item, "type") === "agent_message")
      .map(({ item }) => textAt(item, "text"))
      .at(-1),
};

/** Its web search is a tool that the vendor bills by the call, which the gateway refuses. */
const withoutWebSearch = 'web_search = "disabled"';

/** With a provider of the user's own; and with the built-in one, which tries a WebSocket first. */
export const codexAgents: readonly Agent[] = [
  {
    ...shared,
    name: "codex",
    settings: ({ origin, model }) => ({
      ".codex/config.toml": toml([
        `model = "${model.key}"`,
        'model_provider = "uas"',
        withoutWebSearch,
        "[model_providers.uas]",
        'name = "UAS"',
        `base_url = "${origin}/v1"`,
        'env_key = "UAS_API_KEY"',
        'wire_api = "responses"',
        "request_max_retries = 0",
        "stream_max_retries = 0",
      ]),
    }),
    ask: ({ key }) => exec({ UAS_API_KEY: key }),
  },
  {
    ...shared,
    name: "codex, built-in provider",
    settings: ({ origin, model }) => ({
      ".codex/config.toml": toml([
        `model = "${model.key}"`,
        `openai_base_url = "${origin}/v1"`,
        withoutWebSearch,
      ]),
    }),
    login: { args: ["login", "--with-api-key"] },
    // With another provider it compacts by itself, in ordinary requests.
    compacting: ["-c", "model_auto_compact_token_limit=1"],
    ask: () => exec({}),
  },
];

function exec(env: Command["env"] & object): Command {
  // Its sandbox needs rights of the kernel that containers do not have; the home is thrown away.
  const unguarded = "--dangerously-bypass-approvals-and-sandbox";
  return { args: ["exec", "--json", "--skip-git-repo-check", unguarded, "-"], env };
}

function toml(lines: readonly string[]): string {
  return `${lines.join("\n")}\n`;
}
