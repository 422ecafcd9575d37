/** `uas key …`. */
import { createClient, type Transport } from "@connectrpc/connect";
import type { Command } from "commander";
import { type Key, KeyStateSchema } from "../../gen/uas/key/v1/key_pb.ts";
import { KeyService } from "../../gen/uas/key/v1/key_service_pb.ts";
import { type OpenBackend, warn, withBackend } from "./backend.ts";
import type { CliContext, CliTools, Output } from "./context.ts";
import { facts, table } from "./output.ts";
import { everyPage } from "./pages.ts";
import { enumWord, listArgument, timeText } from "./values.ts";

interface CreateOptions {
  readonly account: string;
  readonly name?: string;
  readonly models?: readonly string[];
}

/** Adds the commands. */
export function addKeyCommands(program: Command, { context, print }: CliTools): void {
  const key = program.command("key").description("manage API keys");
  key
    .command("create")
    .description("create a key and print it, this once")
    .requiredOption("--account <account>", "account that pays for its calls")
    .option("--name <name>", "display name")
    .option(
      "--models <list>",
      "the only models it may use, such as a,b (default: all)",
      listArgument,
    )
    .action(async (options: CreateOptions) => {
      print(await withBackend(context, (backend) => createKey(context, backend, options)));
    });
  for (const verb of ["disable", "enable", "delete"] as const) {
    key
      .command(verb)
      .description(changes[verb])
      .argument("<key>", "key id (not the key itself)")
      .action(async (keyId: string) => {
        print(await withBackend(context, ({ transport }) => changeKey(transport, verb, keyId)));
      });
  }
  key
    .command("list")
    .description("list the keys of an account, newest first, deleted ones included")
    .requiredOption("--account <account>", "account id")
    .action(async ({ account }: { account: string }) => {
      print(await withBackend(context, ({ transport }) => listKeys(transport, account)));
    });
}

const changes = {
  disable: "stop new calls with a key, on every node within a second",
  enable: "let a disabled key make calls again",
  delete: "end a key for ever",
} as const;

async function createKey(
  context: CliContext,
  { transport, config }: OpenBackend,
  options: CreateOptions,
): Promise<Output> {
  const { account: accountId, name = "", models = [] } = options;
  const unknown = models.filter((model) => !config.models.has(model));
  for (const model of unknown) {
    const there = [...config.models.keys()].join(", ") || "none";
    warn(context, `model "${model}" is not configured (there is: ${there})`);
  }
  const client = createClient(KeyService, transport);
  const { key, secret } = await client.createKey({ accountId, name, models: [...models] });
  const json = { keyId: key?.keyId ?? "", key: secret };
  return { json, text: `${facts(json)}\n\nKeep the key now: it is not shown again.` };
}

async function changeKey(
  transport: Transport,
  verb: keyof typeof changes,
  keyId: string,
): Promise<Output> {
  const client = createClient(KeyService, transport);
  const call = {
    disable: () => client.disableKey({ keyId }),
    enable: () => client.enableKey({ keyId }),
    delete: () => client.deleteKey({ keyId }),
  }[verb];
  const { key } = await call();
  const json = { keyId, state: key === undefined ? null : enumWord(KeyStateSchema, key.state) };
  return { json, text: facts(json) };
}

async function listKeys(transport: Transport, accountId: string): Promise<Output> {
  const client = createClient(KeyService, transport);
  const keys = await everyPage(Infinity, async (page) => {
    const response = await client.listKeys({ accountId, ...page });
    return { items: response.keys, nextPageToken: response.nextPageToken };
  });
  const json = keys.map(keyJson);
  const rows = json.map(({ keyId, masked, state, name, models, createdAt }) => [
    keyId,
    masked,
    state ?? "",
    createdAt ?? "",
    models.length === 0 ? "all" : models.join(","),
    name,
  ]);
  return { json, text: table(["KEY ID", "KEY", "STATE", "CREATED", "MODELS", "NAME"], rows) };
}

function keyJson(key: Key) {
  return {
    keyId: key.keyId,
    name: key.name,
    masked: key.masked,
    state: enumWord(KeyStateSchema, key.state),
    models: key.models,
    createdAt: timeText(key.createTime),
    deletedAt: timeText(key.deleteTime),
  };
}
