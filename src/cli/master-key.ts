/** `uas master-key …`. */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Command, Option } from "commander";
import { decodeMasterKey } from "../config/master-key.ts";
import { requireDatabase, settingsOf } from "./backend.ts";
import type { CliContext, CliTools, Output, RotatedSecrets } from "./context.ts";
import { CliError } from "./failure.ts";

/** Adds the command. */
export function addMasterKeyCommands(masterKey: Command, { context, print }: CliTools): void {
  masterKey
    .command("rotate")
    .description(
      "encrypt the secrets of the database with UAS_MASTER_KEY; stop all gateways before",
    )
    .option(
      "--previous <file>",
      "file with the former key in base64; default: master.key in the data folder",
    )
    .addOption(
      new Option("--lost", "the former key is lost: delete what it encrypts")
        .default(false)
        .conflicts("previous"),
    )
    .action(async (options: Options) => print(await rotate(context, options)));
}

interface Options {
  readonly previous?: string;
  readonly lost: boolean;
}

async function rotate(context: CliContext, { previous, lost }: Options): Promise<Output> {
  const settings = settingsOf(context);
  requireDatabase(settings);
  if (settings.masterKey === undefined && !lost) {
    throw new CliError(
      "Set UAS_MASTER_KEY to the new key first (create one with `openssl rand -base64 32`)",
    );
  }
  const file = resolve(context.cwd, previous ?? join(settings.dataDir, "master.key"));
  const { rotateMasterKey } = await context.app();
  const rotated = await rotateMasterKey({ settings, previous: lost ? undefined : readKey(file) });
  return { json: { ...rotated, lost }, text: lost ? discarded(rotated) : encrypted(rotated) };
}

function readKey(file: string): Uint8Array {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    throw new CliError(
      `Cannot read the former master key from ${file}; name its file with --previous`,
      {
        cause,
      },
    );
  }
  const key = decodeMasterKey(text.trim());
  if (key !== undefined) return key;
  throw new CliError(`${file} does not contain 32 bytes in base64`);
}

function counts(rotated: RotatedSecrets): string {
  return [
    `${rotated.dataKeys} data keys of accounts`,
    `${rotated.webhookSecrets} webhook secrets`,
    `${rotated.authenticators} authenticators`,
    `${rotated.reasoning} pieces of stored reasoning`,
    `${rotated.configSecrets} secrets of the configuration`,
  ].join(", ");
}

function encrypted(rotated: RotatedSecrets): string {
  return [
    `encrypted with the new key: ${counts(rotated)}`,
    "Start every gateway of this database with the new UAS_MASTER_KEY, and delete the former key.",
  ].join("\n");
}

function discarded(rotated: RotatedSecrets): string {
  return [
    `deleted: ${counts(rotated)}, and all copies of API keys`,
    "API keys keep working, but cannot be shown again. Accounts get new webhook secrets: tell their owners.",
    "Users with an authenticator sign in with their password and set up a new one.",
  ].join("\n");
}
