/** The command line of `npm run agents`. */
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import type { Agent } from "./agent.ts";
import { claudeCodeAgents } from "./claude-code.ts";
import { clineAgents } from "./cline.ts";
import { codexAgents } from "./codex.ts";
import { geminiCliAgents } from "./gemini-cli.ts";
import { opencodeAgents } from "./opencode.ts";
import { piAgents } from "./pi.ts";
import { qwenCodeAgents } from "./qwen-code.ts";

/** Options of a run. */
export interface AgentsOptions {
  /**
   * The folder whose `node_modules` has the programs; undefined means install them in a temporary
   * one.
   */
  readonly clisFolder: string | undefined;
  readonly agents: readonly Agent[];
}

const agents: readonly Agent[] = [
  ...codexAgents,
  ...claudeCodeAgents,
  ...opencodeAgents,
  ...geminiCliAgents,
  ...qwenCodeAgents,
  ...piAgents,
  ...clineAgents,
];
const programs = [...new Set(agents.map(({ cli }) => cli.program))];

/** Usage text of the script. */
export const usage = `usage: npm run agents -- (--clis DIR | --install) [--only ${programs.join(",")}]
  --clis DIR  the agents are installed below DIR/node_modules
  --install   install the known versions into a temporary folder (about 1.5 GB)
`;

/** @throws Error with a message for the user. */
export function readOptions(args: readonly string[]): AgentsOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      clis: { type: "string" },
      install: { type: "boolean", default: false },
      only: { type: "string", default: programs.join(",") },
    },
  });
  if ((values.clis === undefined) !== values.install) {
    throw new Error("say where the agents are: --clis DIR, or --install");
  }
  const only = values.only.split(",");
  const unknown = only.find((name) => !programs.includes(name));
  if (unknown !== undefined) throw new Error(`no agent is called "${unknown}"`);
  return {
    clisFolder: values.clis && resolve(values.clis),
    agents: agents.filter(({ cli }) => only.includes(cli.program)),
  };
}
