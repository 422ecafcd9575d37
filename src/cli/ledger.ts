/** `uas ledger …`. */
import { createClient, type Transport } from "@connectrpc/connect";
import type { Command } from "commander";
import { BillingService } from "../../gen/uas/billing/v1/billing_service_pb.ts";
import { withBackend } from "./backend.ts";
import type { CliTools, Output } from "./context.ts";
import { table } from "./output.ts";

/** Adds the commands. */
export function addLedgerCommands(program: Command, { context, print }: CliTools): void {
  const ledger = program.command("ledger").description("look into the books");
  ledger
    .command("audit")
    .description("check the books; fails and names the broken rules where they are wrong")
    .action(async () => {
      print(await withBackend(context, ({ transport }) => audit(transport)));
    });
}

async function audit(transport: Transport): Promise<Output> {
  const response = await createClient(BillingService, transport).auditLedger({});
  const findings = response.findings.map(({ rule, detail }) => ({ rule, detail }));
  const isRight = findings.length === 0;
  const rows = findings.map(({ rule, detail }) => [rule, detail]);
  const text = isRight ? "ok: the books are right" : table(["RULE", "BROKEN BY"], rows);
  return { json: { ok: isRight, findings }, text, exitCode: isRight ? 0 : 1 };
}
