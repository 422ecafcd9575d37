/** `uas config …`, `uas apply`, `uas rollback` and `uas reload`: the configuration in force. */
import { readFileSync } from "node:fs";
import { createClient, type Transport } from "@connectrpc/connect";
import type { Command } from "commander";
import type {
  Config,
  ConfigDifference,
  ConfigRevision,
} from "../../gen/uas/config/v1/config_pb.ts";
import { ConfigService } from "../../gen/uas/config/v1/config_service_pb.ts";
import { withBackend } from "./backend.ts";
import type { CliContext, CliTools, Output } from "./context.ts";
import { CliError } from "./failure.ts";
import { readMerged } from "./merged-file.ts";
import { cell, everyPage, facts, table } from "./output.ts";
import { countArgument, orNull, timeText } from "./values.ts";

/** Default number of listed revisions. */
const limitDefault = 50;

type Run = (work: (transport: Transport) => Promise<Output>) => Promise<void>;

function runner({ context, print }: CliTools): Run {
  return async (work) => print(await withBackend(context, ({ transport }) => work(transport)));
}

/** Adds the commands of `uas config`. */
export function addConfigCommands(config: Command, tools: CliTools): void {
  const run = runner(tools);
  config
    .command("show")
    .description("show what is in force in each process")
    .option("--document", "print the document in force instead")
    .action(({ document = false }: { document?: boolean }) =>
      run(document ? showDocument : showConfig),
    );
  config
    .command("list")
    .description("list applied revisions, newest first")
    .option("--limit <count>", "maximum number", countArgument, limitDefault)
    .action(({ limit }: { limit: number }) => run((to) => listRevisions(to, limit)));
  config
    .command("get")
    .description("print the document of a revision")
    .argument("<revision>", "its number", revisionArgument)
    .action((revision: bigint) => run((to) => getRevision(to, revision)));
  addSecretCommands(
    config.command("secret").description("manage secrets of the configuration"),
    run,
  );
}

function addSecretCommands(secret: Command, run: Run): void {
  secret
    .command("set")
    .description("store a secret from standard input; documents name it as ${secret:NAME}")
    .argument("<name>", "letters, digits and . _ -")
    .action((name: string) => run((to) => setSecret(to, name, readFileSync(0, "utf8").trim())));
  secret
    .command("list")
    .description("list the names of secrets")
    .action(() => run(listSecrets));
  secret
    .command("delete")
    .description("delete a secret that the configuration in force does not name")
    .argument("<name>", "its name")
    .action((name: string) =>
      run(async (to) => {
        await createClient(ConfigService, to).deleteSecret({ name });
        return { json: { name, deleted: true }, text: `deleted: ${name}` };
      }),
    );
}

interface ApplyWanted {
  readonly note: string;
  readonly dryRun?: boolean;
}

/** Adds `uas apply`. */
export function addApply(command: Command, tools: CliTools): void {
  const run = runner(tools);
  command
    .argument("<file>", "the document, as uas.yaml")
    .option("--note <text>", "the reason, for the list of revisions", "")
    .option("--dry-run", "show problems and differences; change nothing")
    .action((file: string, wanted: ApplyWanted) =>
      run((to) => applyFile(tools.context, to, { ...wanted, file })),
    );
}

/** Adds `uas rollback`. */
export function addRollback(command: Command, tools: CliTools): void {
  const run = runner(tools);
  command
    .argument(
      "[revision]",
      "its number, or `file` for the file of each gateway (default: the one before)",
    )
    .option("--note <text>", "the reason, for the list of revisions", "")
    .action((revision: string | undefined, { note }: { note: string }) =>
      run((to) => rollBack(to, revision, note)),
    );
}

/** Adds `uas reload`. */
export function addReload(command: Command, tools: CliTools): void {
  command.action(async () => {
    const { context, print } = tools;
    const output = await withBackend(context, ({ transport, isRunning }) => {
      if (isRunning) return reload(transport);
      throw new CliError(
        "no gateway runs on this data folder: start one with `uas serve`, or run this command where it runs",
      );
    });
    print(output);
  });
}

async function reload(transport: Transport): Promise<Output> {
  const { config, changed } = await createClient(ConfigService, transport).reloadConfig({});
  const head = changed ? "loaded" : "nothing has changed";
  const restart = restartLines(config?.needsRestart ?? []);
  const text = [`${head}: ${config?.source} ${config?.hash}`, ...restart].join("\n");
  return { json: { changed, ...configJson(config) }, text };
}

async function showConfig(transport: Transport): Promise<Output> {
  const { config, processes } = await createClient(ConfigService, transport).getConfig({});
  const rows = processes.map((each) => ({
    processId: each.processId,
    name: each.name,
    source: each.source,
    hash: each.hash,
    loadedAt: timeText(each.loadTime),
    needsRestart: each.needsRestart,
    problem: orNull(each.problem),
  }));
  const head = ["PROCESS", "SOURCE", "HASH", "LOADED", "NEEDS RESTART", "PROBLEM"];
  const listed = rows.map((row) => [
    row.name,
    row.source,
    row.hash,
    cell(row.loadedAt),
    cell(row.needsRestart.join(", ")),
    cell(row.problem),
  ]);
  const json = { ...configJson(config), processes: rows };
  const { warnings: _, ...shown } = configJson(config);
  return { json, text: `${facts(shown)}\n\n${table(head, listed)}` };
}

async function showDocument(transport: Transport): Promise<Output> {
  const { config } = await createClient(ConfigService, transport).getConfig({});
  const document = config?.document ?? "";
  return { json: { document }, text: document.trimEnd() };
}

function configJson(config: Config | undefined) {
  return {
    source: config?.source ?? "",
    revision: config?.revision ? Number(config.revision) : null,
    hash: config?.hash ?? "",
    loadedAt: timeText(config?.loadTime),
    fileDiffers: config?.fileDiffers ?? false,
    needsRestart: config?.needsRestart ?? [],
    problem: orNull(config?.problem ?? ""),
    warnings: config?.warnings ?? [],
  };
}

async function listRevisions(transport: Transport, limit: number): Promise<Output> {
  const client = createClient(ConfigService, transport);
  const revisions = await everyPage(limit, async (page) => {
    const { revisions: items, nextPageToken } = await client.listRevisions(page);
    return { items, nextPageToken };
  });
  const json = revisions.map(revisionJson);
  const head = ["REVISION", "APPLIED", "BY", "HASH", "IN FORCE", "NOTE"];
  const rows = json.map((each) => [
    String(each.revision),
    cell(each.createdAt),
    cell(each.author),
    each.hash ?? "file",
    each.current ? "yes" : "",
    cell(each.note),
  ]);
  return { json, text: table(head, rows) };
}

function revisionJson(revision: ConfigRevision) {
  return {
    revision: Number(revision.revision),
    createdAt: timeText(revision.createTime),
    author: revision.author,
    hash: orNull(revision.hash),
    note: revision.note,
    current: revision.current,
  };
}

async function getRevision(transport: Transport, revision: bigint): Promise<Output> {
  const client = createClient(ConfigService, transport);
  const { document } = await client.getRevision({ revision });
  return { json: { revision: Number(revision), document }, text: document.trimEnd() };
}

async function applyFile(
  context: CliContext,
  transport: Transport,
  { file, note, dryRun = false }: ApplyWanted & { readonly file: string },
): Promise<Output> {
  const client = createClient(ConfigService, transport);
  const { document, source } = await readMerged(context, file);
  const { config } = await client.getConfig({});
  const checked = await client.checkConfig({ document });
  for (const problem of checked.problems) context.err(`${source}:${problem}\n`);
  if (checked.problems.length > 0) {
    return { json: { applied: false, problems: checked.problems }, text: "", exitCode: 1 };
  }
  for (const warning of checked.warnings) context.err(`warning: ${source}:${warning}\n`);
  if (dryRun) return changeOutput("nothing was applied", { ...checked, applied: false });
  const etag = config?.etag ?? "";
  const applied = await client.applyConfig({ document, etag, note });
  const revision = applied.revision && revisionJson(applied.revision);
  const head = `applied: revision ${revision?.revision} is in force in all processes`;
  return changeOutput(head, { ...applied, applied: true, revision });
}

async function rollBack(
  transport: Transport,
  wanted: string | undefined,
  note: string,
): Promise<Output> {
  const client = createClient(ConfigService, transport);
  const revision = await revisionToUse(transport, wanted);
  const rolled = await client.rollBackConfig({ revision, note });
  const made = rolled.revision && revisionJson(rolled.revision);
  const what =
    revision === 0n ? "the file of each gateway" : `the document of revision ${revision}`;
  const head = `in force: ${what}, as revision ${made?.revision}`;
  return changeOutput(head, { ...rolled, applied: true, revision: made });
}

/** The revision to return to: by default the document before the one in force. */
async function revisionToUse(transport: Transport, wanted: string | undefined): Promise<bigint> {
  if (wanted === "file") return 0n;
  if (wanted !== undefined) return revisionArgument(wanted);
  const client = createClient(ConfigService, transport);
  const { revisions } = await client.listRevisions({ pageSize: 2 });
  const [newest, before] = revisions;
  if (newest === undefined) {
    throw new CliError("no revision was applied yet: there is nothing to go back to");
  }
  return before === undefined || before.hash === "" ? 0n : before.revision;
}

interface ChangeFacts {
  readonly applied: boolean;
  readonly revision?: ReturnType<typeof revisionJson> | undefined;
  readonly differences: readonly ConfigDifference[];
  readonly needsRestart: readonly string[];
}

function changeOutput(
  head: string,
  { applied, revision, differences, needsRestart }: ChangeFacts,
): Output {
  const listed = differences.map(({ path, before, after }) => ({ path, before, after }));
  const rows = listed.map(({ path, before, after }) => [path, cell(before), cell(after)]);
  const changes =
    rows.length === 0 ? ["no differences"] : [table(["SETTING", "BEFORE", "AFTER"], rows)];
  return {
    json: { applied, revision: revision ?? null, differences: listed, needsRestart },
    text: [...changes, ...restartLines(needsRestart), head].join("\n"),
  };
}

function restartLines(needsRestart: readonly string[]): string[] {
  if (needsRestart.length === 0) return [];
  return [`in force after a restart only: ${needsRestart.join(", ")}`];
}

async function setSecret(transport: Transport, name: string, value: string): Promise<Output> {
  if (value === "") {
    throw new CliError(
      `standard input is empty: write the secret to it, as in \`uas config secret set ${name} < FILE\``,
    );
  }
  const { secret } = await createClient(ConfigService, transport).setSecret({ name, value });
  const json = { name, updatedAt: timeText(secret?.updateTime), used: secret?.used ?? false };
  return { json, text: `stored: write "\${secret:${name}}" in the configuration` };
}

async function listSecrets(transport: Transport): Promise<Output> {
  const client = createClient(ConfigService, transport);
  const secrets = await everyPage(Infinity, async (page) => {
    const { secrets: items, nextPageToken } = await client.listSecrets(page);
    return { items, nextPageToken };
  });
  const json = secrets.map(({ name, updateTime, author, used }) => ({
    name,
    updatedAt: timeText(updateTime),
    author,
    used,
  }));
  const rows = json.map((each) => [
    each.name,
    cell(each.updatedAt),
    cell(each.author),
    each.used ? "yes" : "no",
  ]);
  return { json, text: table(["NAME", "SET", "BY", "USED"], rows) };
}

function revisionArgument(text: string): bigint {
  if (/^[1-9][0-9]{0,17}$/.test(text)) return BigInt(text);
  throw new CliError(`${text} is no number of a revision: \`uas config list\` shows them`);
}
