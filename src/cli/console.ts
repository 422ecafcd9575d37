/** `uas console …`. */
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import type { Command } from "commander";
import { UserService } from "../../gen/uas/account/v1/user_service_pb.ts";
import type { Settings } from "../config/config.ts";
import { type OpenBackend, withBackend } from "./backend.ts";
import type { CliTools, Output } from "./context.ts";

interface LinkOptions {
  readonly user?: string;
  readonly account?: string;
}

/** Adds the commands. */
export function addConsoleCommands(group: Command, { context, print }: CliTools): void {
  group
    .command("link")
    .description("print a link that signs the operator in, once, within an hour")
    .option("--user <user>", "sign this user in instead (id)")
    .option("--account <account>", "account of the operator, if the operator has none yet")
    .action(async (options: LinkOptions) => {
      print(await withBackend(context, (backend) => makeLink(backend, options)));
    });
}

async function makeLink(
  { transport, settings, consoleUrl = urlOf(settings) }: OpenBackend,
  { user = "", account = "" }: LinkOptions,
): Promise<Output> {
  const users = createClient(UserService, transport);
  const made = await users.createSignInLink({ userId: user, accountId: account });
  const json = {
    url: `${withHost(consoleUrl)}/console/welcome#${made.token}`,
    userId: made.user?.userId ?? "",
    accountId: made.user?.accountId ?? "",
    expiresAt: made.expireTime ? timestampDate(made.expireTime).toISOString() : null,
  };
  return { json, text: json.url };
}

/** The address of the console. */
function urlOf({ consoleUrl, publicUrl, listen: { host, port } }: Settings): string {
  const known = consoleUrl ?? publicUrl;
  return known ?? `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** The addresses 0.0.0.0 and :: mean every interface; a browser cannot open them. */
function withHost(url: string): string {
  return url.replace(/^http:\/\/(?:0\.0\.0\.0|\[::\])(?=:|$)/, "http://127.0.0.1");
}
