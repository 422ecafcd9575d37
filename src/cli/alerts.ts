/** `uas alerts …`. */
import { createClient, type Transport } from "@connectrpc/connect";
import type { Command } from "commander";
import { OperatorService } from "../../gen/uas/operator/v1/operator_service_pb.ts";
import { withBackend } from "./backend.ts";
import type { CliTools, Output } from "./context.ts";
import { cell, table } from "./output.ts";
import { orNull, timeText } from "./values.ts";

/** Adds the commands. */
export function addAlertsCommands(alerts: Command, { context, print }: CliTools): void {
  alerts
    .command("list", { isDefault: true })
    .description("list what needs the operator now")
    .action(async () => {
      print(await withBackend(context, ({ transport }) => activeAlerts(transport)));
    });
  alerts
    .command("test")
    .description("send a test message to each address of `alerts`, and show what happened")
    .action(async () => {
      print(await withBackend(context, ({ transport }) => testAlerts(transport)));
    });
}

const noAddress = "no address gets alerts: add alerts: to uas.yaml";

async function activeAlerts(transport: Transport): Promise<Output> {
  const { alerts, sent } = await createClient(OperatorService, transport).getActiveAlerts({});
  const active = alerts.map(({ name, subject, severity, text, beginTime }) => ({
    since: timeText(beginTime),
    severity,
    name,
    subject: orNull(subject),
    text,
  }));
  const rows = active.map((alert) => [
    ...[alert.since, alert.severity, alert.name, alert.subject, alert.text].map(cell),
  ]);
  const list =
    rows.length === 0
      ? "nothing needs the operator"
      : table(["SINCE", "SEVERITY", "ALERT", "ABOUT", "WHAT TO DO"], rows);
  return { json: { alerts: active, sent }, text: sent ? list : `${list}\n${noAddress}` };
}

async function testAlerts(transport: Transport): Promise<Output> {
  const { deliveries } = await createClient(OperatorService, transport).testAlerts({});
  const json = deliveries.map(({ to, error }) => ({ to, error: orNull(error) }));
  const rows = json.map(({ to, error }) => [to, error === null ? "sent" : `failed: ${error}`]);
  const hasFailed = json.length === 0 || json.some(({ error }) => error !== null);
  const text = rows.length === 0 ? noAddress : table(["TO", "RESULT"], rows);
  return { json, text, exitCode: hasFailed ? 1 : 0 };
}
