/** Abilities that every agent must have with every model. */
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { greeting } from "../../test/support/upstream/scenario.ts";
import type { Agent, Setup } from "./agent.ts";
import { type Ending, execute } from "./execute.ts";
import type { AgentGateway } from "./gateway.ts";

/** One trial of one agent with one model. */
export interface Trial {
  readonly agent: Agent;
  /** The path of its program. */
  readonly program: string;
  readonly setup: Setup;
  readonly gateway: AgentGateway;
  /** Folder for the agents' home folders. */
  readonly scratch: string;
}

/** A task: what it is called, and how it went. */
export interface Task {
  readonly name: string;
  /** Whether an agent can do it. Default: every one can. */
  readonly isFor?: (agent: Agent) => boolean;
  /** Resolves with what went wrong; undefined if there is nothing. */
  run(trial: Trial): Promise<string | undefined>;
}

/** In the order of the table. */
export const tasks: readonly Task[] = [
  { name: "text", run: askText },
  { name: "tool", run: (trial) => askTool(trial, "") },
  { name: "reasoning", run: askReasoning },
  {
    name: "compaction",
    isFor: ({ compacting }) => compacting !== undefined,
    run: askCompaction,
  },
];

async function askText(trial: Trial): Promise<string | undefined> {
  const ending = await ask(trial, makeHome(trial), "say hello");
  return judge(trial, ending, greeting.join(""));
}

/** Only the shell can read the word in the file. */
async function askTool(trial: Trial, prefix: string): Promise<string | undefined> {
  const home = makeHome(trial);
  const word = randomBytes(8).toString("hex");
  writeFileSync(join(home, "work", "word.txt"), `${word}\n`);
  const { tool, arguments: args } = trial.agent.callOf("cat word.txt");
  const ending = await ask(trial, home, `${prefix}call ${tool} with ${JSON.stringify(args)}`);
  return judge(trial, ending, word);
}

/** Reasoning before the call must return with its result: the vendors check their seals. */
async function askReasoning(trial: Trial): Promise<string | undefined> {
  const wrong = await askTool(trial, "think, then ");
  if (wrong !== undefined || !trial.agent.reasons) return wrong;
  const sent = trial.gateway.lastSentTo(trial.setup.model);
  const isBack = /"(?:reasoning_content|encrypted_content|signature)":"[^"]/.test(sent);
  return isBack ? undefined : "the reasoning did not come back to the vendor";
}

/**
 * The agent must go on after its conversation was replaced by a summary of the model, or by the
 * vendor's own item: the model gets what takes the conversation's place, and what is done is not
 * done again.
 */
async function askCompaction(trial: Trial): Promise<string | undefined> {
  const { agent, gateway, setup } = trial;
  const home = makeHome(trial);
  const before = gateway.sentTo(setup.model).length;
  const { tool, arguments: args } = agent.callOf("echo ran >> runs.txt");
  const prompt = `call ${tool} with ${JSON.stringify(args)}`;
  const ending = await ask(trial, home, prompt, agent.compacting);
  const wrong = judge(trial, ending, greeting.join(""));
  if (wrong !== undefined) return wrong;
  const runs = readFileSync(join(home, "work", "runs.txt"), "utf8");
  if (runs !== "ran\n") return `the command ran ${runs.split("\n").length - 1} times, not once`;
  const sent = gateway.sentTo(setup.model).slice(before);
  const asked = sent.findIndex((body) =>
    /compaction_trigger|Summarise the conversation/.test(body),
  );
  if (asked < 0) return "no compaction reached the vendor";
  // A vendor answers a request for a summary with the greeting.
  const next = sent[asked + 1] ?? "";
  const isBack = next.includes('"type":"compaction"') || next.includes(greeting.join(""));
  return isBack ? undefined : "what the conversation was compacted to did not reach the vendor";
}

/** A home with the agent's settings, and an empty folder to work in. */
function makeHome({ agent, setup, scratch }: Trial): string {
  const home = mkdtempSync(join(scratch, "home-"));
  mkdirSync(join(home, "work"));
  for (const [path, text] of Object.entries(agent.settings(setup))) {
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), text);
  }
  return home;
}

async function ask(
  trial: Trial,
  home: string,
  prompt: string,
  first: readonly string[] = [],
): Promise<Ending> {
  const { agent, setup, program } = trial;
  const room = { program, home, workFolder: join(home, "work") };
  if (agent.login !== undefined) {
    const login = await execute(room, agent.login, setup.key);
    if (login.code !== 0) return login;
  }
  const command = agent.ask(setup);
  const args = [...first, ...command.args];
  return command.isPromptArgument === true
    ? execute(room, { ...command, args: [...args, prompt] }, "")
    : execute(room, { ...command, args }, prompt);
}

function judge({ agent, gateway }: Trial, ending: Ending, expected: string): string | undefined {
  const log = gateway.takeLog();
  const answer = agent.answerOf(ending.stdout);
  if (ending.code === 0 && answer?.includes(expected) && log.length === 0) return undefined;
  return [
    `ended with ${ending.code ?? "a signal"}; not ${JSON.stringify(expected)} but ` +
      JSON.stringify(answer ?? "no answer"),
    ...tail(ending.stdout),
    ...tail(ending.stderr),
    ...log.map((line) => `gateway: ${line}`),
  ].join("\n");
}

function tail(output: string): string[] {
  const lines = output.split("\n").filter((line) => line.trim() !== "");
  return lines.slice(-5).map((line) => `  ${line.slice(0, 600)}`);
}
