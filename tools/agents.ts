/**
 * `npm run agents`: the agent command lines codex, Claude Code, opencode, Gemini CLI, Qwen Code, pi
 * and Cline through the gateway, at one simulated vendor of each style. Everything runs on
 * 127.0.0.1, each agent in a home that is thrown away.
 *
 * The agents are no dependencies of the project: `--clis DIR` says where they are, `--install`
 * installs them.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Agent } from "./agents/agent.ts";
import { findProgram, install, type Program } from "./agents/find-programs.ts";
import { type AgentGateway, startAgentGateway } from "./agents/gateway.ts";
import { type AgentsOptions, readOptions, usage } from "./agents/options.ts";
import { tasks } from "./agents/trial.ts";

/** The overall result. */
interface Result {
  passed: number;
  readonly failures: string[];
}

async function main(args: readonly string[]): Promise<void> {
  let options: AgentsOptions;
  try {
    options = readOptions(args);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n${usage}`);
    process.exitCode = 2;
    return;
  }
  const scratch = mkdtempSync(join(tmpdir(), "uas-agents-"));
  try {
    const { passed, failures } = await runAll(options, scratch);
    for (const failure of failures) print(`\n${failure}`);
    print(`\n${passed} passed, ${failures.length} failed`);
    process.exitCode = failures.length > 0 ? 1 : 0;
  } finally {
    rmSync(scratch, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function runAll(options: AgentsOptions, scratch: string): Promise<Result> {
  const programs = await findPrograms(options, scratch);
  const gateway = await startAgentGateway(join(scratch, "data"));
  const result: Result = { passed: 0, failures: [] };
  try {
    print(row(["", "model", ...tasks.map(({ name }) => name)]));
    for (const agent of options.agents) {
      const program = programs.get(agent.cli.program) ?? { missing: "it was not looked for" };
      if ("missing" in program) {
        print(row([agent.name, "missing"]));
        result.failures.push(`${agent.name} is missing: ${program.missing}`);
      } else {
        await runAgent({ agent, gateway, scratch, program: program.path }, result);
      }
    }
    result.failures.push(...gateway.violations().map((line) => `reached a vendor: ${line}`));
  } finally {
    await gateway.close();
  }
  return result;
}

const usualVendors = ["chat", "responses", "messages"];

interface AgentRun {
  readonly agent: Agent;
  readonly program: string;
  readonly gateway: AgentGateway;
  readonly scratch: string;
}

async function runAgent(run: AgentRun, result: Result): Promise<void> {
  const { origin, key, models } = run.gateway;
  const { vendors = usualVendors } = run.agent;
  for (const model of models.filter(({ vendor }) => vendors.includes(vendor))) {
    const cells: string[] = [];
    for (const task of tasks) {
      if (task.isFor?.(run.agent) === false) {
        cells.push("-");
        continue;
      }
      const start = performance.now();
      const wrong = await task.run({ ...run, setup: { origin, key, model } });
      const seconds = ((performance.now() - start) / 1_000).toFixed(1);
      cells.push(`${wrong === undefined ? "ok" : "FAILED"} ${seconds} s`);
      if (wrong === undefined) result.passed++;
      else result.failures.push(`${run.agent.name}, ${model.key}, ${task.name}: ${wrong}`);
    }
    print(row([run.agent.name, model.key, ...cells]));
  }
}

async function findPrograms(
  { agents, clisFolder }: AgentsOptions,
  scratch: string,
): Promise<ReadonlyMap<string, Program>> {
  const clis = [...new Set(agents.map(({ cli }) => cli))];
  const folder = clisFolder ?? join(scratch, "clis");
  mkdirSync(folder, { recursive: true });
  const refused =
    clisFolder === undefined ? await install(clis, folder) : new Map<string, string>();
  const programs = new Map<string, Program>();
  for (const cli of clis) {
    const why = refused.get(cli.program);
    const program =
      why === undefined
        ? await findProgram(cli, folder, scratch)
        : { missing: `npm cannot install it here: ${why}` };
    programs.set(cli.program, program);
    if ("version" in program) {
      const known = program.version === cli.version ? "" : `, verified with ${cli.version}`;
      print(`${cli.package} ${program.version}${known}`);
    }
  }
  return programs;
}

const widths = [26, 13, 11, 11, 11, 11];

function row(cells: readonly string[]): string {
  return cells
    .map((cell, at) => cell.padEnd(widths[at] ?? 0))
    .join("")
    .trimEnd();
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

await main(process.argv.slice(2));
