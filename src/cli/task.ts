/** `uas task …`. */
import { createClient, type Transport } from "@connectrpc/connect";
import type { Command } from "commander";
import { AccountService } from "../../gen/uas/account/v1/account_service_pb.ts";
import { type Task, TaskStatus } from "../../gen/uas/task/v1/task_pb.ts";
import { TaskService } from "../../gen/uas/task/v1/task_service_pb.ts";
import { WebhookService } from "../../gen/uas/webhook/v1/webhook_service_pb.ts";
import { statusWord, taskJson } from "../core/task-json.ts";
import { withBackend } from "./backend.ts";
import type { CliTools, Output } from "./context.ts";
import { cell, facts, table, everyPage } from "./output.ts";
import { countArgument, orNull, usdText } from "./values.ts";
import { deliveryJson } from "./webhook-output.ts";

/** Default number of listed tasks. */
const limitDefault = 100;

/** Adds the commands. */
export function addTaskCommands(task: Command, { context, print }: CliTools): void {
  task
    .command("show")
    .description("show a task and its webhooks, by its id or the request id of its submit")
    .argument("<task>", "task id, or request id (x-request-id) of the submit")
    .action(async (taskId: string) => {
      print(await withBackend(context, ({ transport }) => showTask(transport, taskId)));
    });
  task
    .command("list")
    .description("list the tasks of an account, newest first")
    .requiredOption("--account <account>", "account id")
    .option("--limit <count>", "maximum number", countArgument, limitDefault)
    .action(async (options: { account: string; limit: number }) => {
      print(await withBackend(context, ({ transport }) => listTasks(transport, options)));
    });
}

async function showTask(transport: Transport, taskId: string): Promise<Output> {
  const { task } = await createClient(TaskService, transport).getTask({ taskId });
  if (task === undefined) throw new Error("the answer has no task");
  const client = createClient(WebhookService, transport);
  const about = { accountId: task.accountId, taskId: task.taskId };
  const deliveries = await everyPage(Infinity, async (page) => {
    const response = await client.listDeliveries({ ...about, ...page });
    return { items: response.deliveries, nextPageToken: response.nextPageToken };
  });
  const json = { ...shown(task), deliveries: deliveries.map(deliveryJson) };
  return { json, text: facts(json) };
}

async function listTasks(
  transport: Transport,
  { account, limit }: { readonly account: string; readonly limit: number },
): Promise<Output> {
  // An unknown account has an empty task list; a mistyped id should not look like that.
  await createClient(AccountService, transport).getAccount({ accountId: account });
  const client = createClient(TaskService, transport);
  const tasks = await everyPage(limit, async (page) => {
    const response = await client.listTasks({ accountId: account, ...page });
    return { items: response.tasks, nextPageToken: response.nextPageToken };
  });
  const json = tasks.map(shown);
  const head = ["CREATED", "TASK ID", "MODEL", "STATUS", "PROGRESS", "ERROR", "COST"];
  const rows = json.map((task, index) =>
    [
      task["createdAt"],
      task["taskId"],
      task["modelKey"],
      statusWord(tasks[index]?.status ?? TaskStatus.UNSPECIFIED),
      task["progress"],
      task["errorCode"],
      usdText(tasks[index]?.cost),
    ].map(cell),
  );
  return { json, text: table(head, rows) };
}

/** The body of a poll, plus facts for the operator only. */
function shown(task: Task): Readonly<Record<string, unknown>> {
  return {
    ...taskJson(task),
    submitRequestId: task.requestId,
    accountId: task.accountId,
    keyId: task.keyId,
    vendor: orNull(task.vendor),
    vendorTaskId: orNull(task.vendorTaskId),
    callbackUrl: orNull(task.callbackUrl),
    held: usdText(task.held),
    priceVersion: orNull(task.priceVersion),
  };
}
