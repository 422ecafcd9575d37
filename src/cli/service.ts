/** `uas service …`: credentials of your own services. */
import type { Duration, Timestamp } from "@bufbuild/protobuf/wkt";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { createClient, type Transport } from "@connectrpc/connect";
import { type Command, InvalidArgumentError } from "commander";
import {
  type ServiceCredential,
  ServiceCredentialService,
} from "../../gen/uas/operator/v1/service_credential_service_pb.ts";
import { withBackend } from "./backend.ts";
import type { CliTools, Output } from "./context.ts";
import { cell, everyPage, table } from "./output.ts";
import { listArgument, timeText, whenArgument } from "./values.ts";

interface Wanted {
  readonly permissions: readonly string[];
  readonly expires?: Timestamp;
}

/** Adds the commands. */
export function addServiceCommands(service: Command, { context, print }: CliTools): void {
  const run = async (work: (transport: Transport) => Promise<Output>): Promise<void> =>
    print(await withBackend(context, ({ transport }) => work(transport)));
  service
    .command("create")
    .description("create a service credential and print it; it cannot be printed again")
    .argument("<name>", "name of the service, as the audit log shows it")
    .requiredOption(
      "--permissions <list>",
      "what it may do, such as usage:read,accounts:write",
      listArgument,
    )
    .option(
      "--expires <when>",
      "when it expires, such as 30d or 2027-01-31 (default: never)",
      (text) => whenArgument(text),
    )
    .action((name: string, wanted: Wanted) => run((to) => createCredential(to, name, wanted)));
  service
    .command("rotate")
    .description("replace the secret and print the new one; the present one stays valid for a time")
    .argument("<name>", "name of the service")
    .option("--overlap <time>", "how long, such as 1h or 0s (default: 1h)", overlapArgument)
    .action((name: string, { overlap }: { overlap?: Duration }) =>
      run(async (to) => {
        const request = { name, ...(overlap && { overlap }) };
        const rotated = await client(to).rotateServiceCredential(request);
        return withSecret(rotated.serviceCredential, rotated.secret);
      }),
    );
  addChanges(service, run);
}

function addChanges(
  service: Command,
  run: (work: (transport: Transport) => Promise<Output>) => Promise<void>,
): void {
  service
    .command("list")
    .description("list the service credentials")
    .action(() => run(listCredentials));
  service
    .command("disable")
    .description("refuse a service credential, from its next request on")
    .argument("<name>", "name of the service")
    .action((name: string) =>
      run(async (to) =>
        one((await client(to).disableServiceCredential({ name })).serviceCredential),
      ),
    );
  service
    .command("enable")
    .description("accept a disabled service credential again")
    .argument("<name>", "name of the service")
    .action((name: string) =>
      run(async (to) =>
        one((await client(to).enableServiceCredential({ name })).serviceCredential),
      ),
    );
  service
    .command("delete")
    .description("delete a service credential")
    .argument("<name>", "name of the service")
    .action((name: string) =>
      run(async (to) => {
        await client(to).deleteServiceCredential({ name });
        return { json: { name }, text: `Deleted ${name}.` };
      }),
    );
}

function client(transport: Transport) {
  return createClient(ServiceCredentialService, transport);
}

async function createCredential(
  transport: Transport,
  name: string,
  { permissions, expires }: Wanted,
): Promise<Output> {
  const request = { name, permissions: [...permissions], ...(expires && { expireTime: expires }) };
  const created = await client(transport).createServiceCredential(request);
  return withSecret(created.serviceCredential, created.secret);
}

async function listCredentials(transport: Transport): Promise<Output> {
  const credentials = await everyPage(Infinity, async (page) => {
    const { serviceCredentials, nextPageToken } =
      await client(transport).listServiceCredentials(page);
    return { items: serviceCredentials, nextPageToken };
  });
  return listed(credentials);
}

function withSecret(credential: ServiceCredential | undefined, secret: string): Output {
  return { json: { secret, ...(credential && credentialJson(credential)) }, text: secret };
}

function one(credential: ServiceCredential | undefined): Output {
  return listed(credential === undefined ? [] : [credential]);
}

function listed(credentials: readonly ServiceCredential[]): Output {
  const json = credentials.map(credentialJson);
  const rows = json.map((each) => [
    each.name,
    each.secretHint,
    each.state,
    cell(each.expiresAt),
    each.permissions.join(","),
  ]);
  return { json, text: table(["NAME", "SECRET", "STATE", "EXPIRES", "PERMISSIONS"], rows) };
}

/** A service credential in the words of the command line. */
function credentialJson(credential: ServiceCredential) {
  return {
    name: credential.name,
    permissions: credential.permissions,
    secretHint: credential.maskedSecret,
    state: credential.disabled ? "disabled" : "enabled",
    createdAt: timeText(credential.createTime),
    expiresAt: timeText(credential.expireTime),
    previousExpiresAt: timeText(credential.previousExpireTime),
  };
}

const unitMs: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Parses `1h`, `30m` or `0s`. */
function overlapArgument(text: string): Duration {
  const [, count, unit = ""] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  if (count !== undefined) return durationFromMs(Number(count) * (unitMs[unit] ?? 0));
  throw new InvalidArgumentError("Write a time such as 1h, 30m or 0s.");
}
