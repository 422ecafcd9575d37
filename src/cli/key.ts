/** `uas key …`. */
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { createClient, type Transport } from "@connectrpc/connect";
import type { Command } from "commander";
import { type Key, KeyStateSchema } from "../../gen/uas/key/v1/key_pb.ts";
import { KeyService } from "../../gen/uas/key/v1/key_service_pb.ts";
import type { Money } from "../../gen/uas/type/v1/money_pb.ts";
import { OperatorService } from "../../gen/uas/operator/v1/operator_service_pb.ts";
import { warn, withBackend } from "./backend.ts";
import type { CliContext, CliTools, Output } from "./context.ts";
import { CliError } from "./failure.ts";
import {
  addLimitOptions,
  changedLimits,
  limitMembers,
  limitTerms,
  type LimitOptions,
} from "./limits.ts";
import { cell, facts, table, everyPage } from "./output.ts";
import {
  enumWord,
  listArgument,
  orWord,
  timeText,
  usdArgument,
  usdText,
  whenArgument,
} from "./values.ts";

interface CreateOptions extends LimitOptions {
  readonly account: string;
  readonly name?: string;
  readonly models?: readonly string[];
  readonly limit?: Money;
  readonly expires?: Timestamp;
}

/** Omitted members stay as they are; `false` clears one. */
interface UpdateOptions {
  readonly name?: string;
  readonly models?: readonly string[] | false;
  readonly limit?: Money | false;
  readonly expires?: Timestamp | false;
}

/** Adds the commands. */
export function addKeyCommands(key: Command, { context, print }: CliTools): void {
  addCreate(key, { context, print });
  addUpdate(key, { context, print });
  addLimit(key, { context, print });
  addActions(key, { context, print });
}

type AddCommand = (key: Command, tools: CliTools) => void;

const addCreate: AddCommand = (key, { context, print }) => {
  const command = key
    .command("create")
    .description("create a key and print it; it cannot be printed again")
    .requiredOption("--account <account>", "account that pays for its calls")
    .option("--name <name>", "display name")
    .option(
      "--models <list>",
      "the only models that the key may use, such as a,b (default: all)",
      listArgument,
    )
    .option(
      "--limit <usd>",
      "maximum cost of all its calls together, in US dollars (default: no limit)",
      usdArgument,
    )
    .option(
      "--expires <when>",
      "when the key expires, such as 30d or 2027-01-31 (default: never)",
      expiryArgument,
    );
  addLimitOptions(command).action(async (options: CreateOptions) => {
    print(await withBackend(context, ({ transport }) => createKey(context, transport, options)));
  });
};

const addUpdate: AddCommand = (key, { context, print }) => {
  key
    .command("update")
    .description("change a key, everywhere within a second; omitted options stay unchanged")
    .argument("<key>", "key id (not the key itself)")
    .option("--name <name>", "display name")
    .option(
      "--models <list>",
      "the only models that the key may use, or all",
      orWord("all", listArgument),
    )
    .option(
      "--limit <usd>",
      "maximum cost of all its calls together, in US dollars, or none",
      orWord("none", usdArgument),
    )
    .option(
      "--expires <when>",
      "when the key expires, such as 30d or 2027-01-31, or never",
      orWord("never", expiryArgument),
    )
    .action(async (keyId: string, options: UpdateOptions) => {
      print(
        await withBackend(context, ({ transport }) =>
          updateKey(context, transport, { keyId, options }),
        ),
      );
    });
};

const addLimit: AddCommand = (key, { context, print }) => {
  const command = key
    .command("limit")
    .description("set budgets and rate limits of a key; omitted options stay unchanged")
    .argument("<key>", "key id (not the key itself)");
  addLimitOptions(command).action(async (keyId: string, options: LimitOptions) => {
    print(await withBackend(context, ({ transport }) => limitKey(transport, keyId, options)));
  });
};

const addActions: AddCommand = (key, { context, print }) => {
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
};

const changes = {
  disable: "refuse new calls with a key, everywhere within a second",
  enable: "accept calls with a disabled key again",
  delete: "delete a key permanently",
} as const;

async function createKey(
  context: CliContext,
  transport: Transport,
  options: CreateOptions,
): Promise<Output> {
  const { account: accountId, name = "", models = [], limit, expires } = options;
  await warnOfUnknown(context, transport, models);
  const { key, secret } = await createClient(KeyService, transport).createKey({
    accountId,
    name,
    models: [...models],
    ...(limit && { spendLimit: limit }),
    ...(expires && { expireTime: expires }),
    ...limitMembers(options).members,
  });
  const json = { keyId: key?.keyId ?? "", key: secret, ...keyTerms(key) };
  return { json, text: `${facts(json)}\n\nStore the key now: it cannot be shown again.` };
}

async function updateKey(
  context: CliContext,
  transport: Transport,
  { keyId, options }: { readonly keyId: string; readonly options: UpdateOptions },
): Promise<Output> {
  const { name = "", limit, expires } = options;
  const models = options.models || [];
  const paths = Object.keys(members).filter((option) => option in options);
  if (paths.length === 0) throw new CliError("nothing to change: see uas key update --help");
  await warnOfUnknown(context, transport, models);
  const { key } = await createClient(KeyService, transport).updateKey({
    key: {
      keyId,
      name,
      models: [...models],
      ...(limit && { spendLimit: limit }),
      ...(expires && { expireTime: expires }),
    },
    updateMask: { paths: paths.map((option) => members[option as keyof typeof members]) },
  });
  const json = key === undefined ? {} : keyJson(key);
  return { json, text: facts(json) };
}

async function limitKey(
  transport: Transport,
  keyId: string,
  options: LimitOptions,
): Promise<Output> {
  const client = createClient(KeyService, transport);
  const readPresent = async () => (await client.getKey({ keyId })).key?.rateLimits;
  const { members: limits, paths } = await changedLimits(options, "key limit", readPresent);
  const { key } = await client.updateKey({
    key: { keyId, ...limits },
    updateMask: { paths: [...paths] },
  });
  const json = key === undefined ? {} : keyJson(key);
  return { json, text: facts(json) };
}

/** The options of `key update`, with the members of the contract's key that they change. */
const members = {
  name: "name",
  models: "models",
  limit: "spend_limit",
  expires: "expire_time",
} as const;

/**
 * Commander passes the previous value as a second argument, which must not be taken for the time.
 */
function expiryArgument(text: string): Timestamp {
  return whenArgument(text);
}

async function warnOfUnknown(
  context: CliContext,
  transport: Transport,
  models: readonly string[],
): Promise<void> {
  if (models.length === 0) return;
  const configured = await modelKeys(transport);
  for (const model of models.filter((each) => !configured.includes(each))) {
    const there = configured.join(", ") || "none";
    warn(context, `model "${model}" is not configured (there is: ${there})`);
  }
}

/** The names of the models that are in force. */
async function modelKeys(transport: Transport): Promise<readonly string[]> {
  const client = createClient(OperatorService, transport);
  const models = await everyPage(Infinity, async (page) => {
    const response = await client.listConfiguredModels(page);
    return { items: response.models, nextPageToken: response.nextPageToken };
  });
  return models.map(({ modelKey }) => modelKey);
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
  const rows = json.map((key) => [
    key.keyId,
    key.masked,
    cell(key.state),
    cell(key.createdAt),
    cell(key.lastUsedAt),
    key.expiresAt ?? "never",
    key.spent,
    key.limit ?? "none",
    key.models.length === 0 ? "all" : key.models.join(","),
    key.name,
  ]);
  return { json, text: table(listHead, rows) };
}

const listHead = [
  "KEY ID",
  "KEY",
  "STATE",
  "CREATED",
  "LAST USED",
  "EXPIRES",
  "SPENT",
  "LIMIT",
  "MODELS",
  "NAME",
];

function keyJson(key: Key) {
  return {
    keyId: key.keyId,
    name: key.name,
    masked: key.masked,
    state: enumWord(KeyStateSchema, key.state),
    models: key.models,
    createdAt: timeText(key.createTime),
    deletedAt: timeText(key.deleteTime),
    ...keyTerms(key),
    spent: usdText(key.spent),
    lastUsedAt: timeText(key.lastUseTime),
  };
}

/** The limits of a key, in the words of the command line. */
function keyTerms(key: Key | undefined) {
  const limit = key?.spendLimit;
  return {
    expiresAt: timeText(key?.expireTime),
    limit: limit === undefined ? null : usdText(limit),
    ...limitTerms(key),
  };
}
