/** `uas webhook …`. */
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type Client, createClient } from "@connectrpc/connect";
import { type Command, InvalidArgumentError, Option } from "commander";
import { DeliveryState, WebhookStatus } from "../../gen/uas/webhook/v1/webhook_pb.ts";
import { WebhookService } from "../../gen/uas/webhook/v1/webhook_service_pb.ts";
import { withBackend } from "./backend.ts";
import type { CliTools, Output } from "./context.ts";
import { everyPage } from "./output.ts";
import { countArgument } from "./values.ts";
import {
  deliveryFacts,
  deliveryList,
  endpointList,
  secretFacts,
  sentAgain,
} from "./webhook-output.ts";

/** Dependencies of the commands in this file. */
interface Group {
  readonly group: Command;
  /** Opens the service, runs the work, prints its output. */
  readonly run: (
    work: (webhooks: Client<typeof WebhookService>) => Promise<Output>,
  ) => Promise<void>;
}

const states = {
  pending: DeliveryState.PENDING,
  sending: DeliveryState.SENDING,
  delivered: DeliveryState.DELIVERED,
  failed: DeliveryState.FAILED,
  dropped: DeliveryState.DROPPED,
  parked: DeliveryState.PARKED,
} as const;

const statuses = {
  progress: WebhookStatus.PROGRESS,
  completed: WebhookStatus.COMPLETED,
  failed: WebhookStatus.FAILED,
  cancelled: WebhookStatus.CANCELLED,
} as const;

/** Default number of listed deliveries. */
const listedDefault = 100;

/** Adds the commands. */
export function addWebhookCommands(group: Command, { context, print }: CliTools): void {
  const run: Group["run"] = async (work) => {
    print(
      await withBackend(context, ({ transport }) => work(createClient(WebhookService, transport))),
    );
  };
  addSecretCommands({ group, run });
  addListCommands({ group, run });
  addSendCommands({ group, run });
  addEndpointCommands({ group, run });
}

function addSecretCommands({ group, run }: Group): void {
  group
    .command("secret")
    .description("print the signing secret of an account's webhooks")
    .argument("<account>", "account id")
    .action((accountId: string) =>
      run(async (webhooks) => secretFacts((await webhooks.getSecret({ accountId })).secret)),
    );
  group
    .command("rotate")
    .description(
      "create a new secret; the old one still signs until the new one is promoted, at most a day",
    )
    .argument("<account>", "account id")
    .action((accountId: string) =>
      run(async (webhooks) => secretFacts((await webhooks.rotateSecret({ accountId })).secret)),
    );
  group
    .command("promote")
    .description("make the new secret sign")
    .argument("<account>", "account id")
    .option("--drop-old", "end the old secret at once, if it has leaked")
    .action((accountId: string, { dropOld = false }: { readonly dropOld?: boolean }) =>
      run(async (webhooks) =>
        secretFacts((await webhooks.promoteSecret({ accountId, dropOld })).secret),
      ),
    );
}

interface ListOptions {
  readonly account?: string;
  readonly state?: keyof typeof states;
  readonly task?: string;
  readonly callbackId?: string;
  readonly origin?: string;
  readonly limit?: number;
}

function addListCommands({ group, run }: Group): void {
  group
    .command("deliveries")
    .description("list the deliveries of all accounts, or of one, newest first")
    .option("--account <account>", "account id")
    .addOption(
      new Option("--state <state>", "only deliveries in this state").choices(Object.keys(states)),
    )
    .option("--task <task>", "only deliveries of this task")
    .option("--callback-id <id>", "only deliveries with this callback id")
    .option(
      "--origin <origin>",
      "only deliveries to this receiver, such as https://hooks.example.com",
    )
    .option("--limit <count>", "maximum number (default: 100)", countArgument)
    .action((options: ListOptions) => run((webhooks) => listDeliveries(webhooks, options)));
  group
    .command("show")
    .description("show a delivery, its attempts and its body")
    .argument("<delivery>", "delivery id: external_data.event_id of the payload")
    .action((deliveryId: string) =>
      run(async (webhooks) => deliveryFacts(await webhooks.getDelivery({ deliveryId }))),
    );
}

async function listDeliveries(
  webhooks: Client<typeof WebhookService>,
  options: ListOptions,
): Promise<Output> {
  const {
    account = "",
    state,
    task = "",
    callbackId = "",
    origin = "",
    limit = listedDefault,
  } = options;
  const filter = {
    accountId: account,
    state: state === undefined ? DeliveryState.UNSPECIFIED : states[state],
    taskId: task,
    callbackId,
    origin,
  };
  const deliveries = await everyPage(limit, async (page) => {
    const response = await webhooks.listDeliveries({ ...filter, ...page });
    return { items: response.deliveries, nextPageToken: response.nextPageToken };
  });
  return deliveryList(deliveries, { isOfAll: account === "" });
}

function addSendCommands({ group, run }: Group): void {
  group
    .command("resend")
    .description("send a delivery again, now and with its complete retry schedule")
    .argument("<delivery>", "delivery id")
    .action((deliveryId: string) =>
      run(async (webhooks) => {
        await webhooks.resendDelivery({ deliveryId });
        return deliveryFacts(await webhooks.getDelivery({ deliveryId }));
      }),
    );
  group
    .command("resend-failed")
    .description("send failed deliveries of final events again")
    .requiredOption("--account <account>", "account id")
    .requiredOption(
      "--since <time>",
      "only events from this time on, such as 2027-01-31T09:00:00Z",
      timeArgument,
    )
    .option("--origin <origin>", "only deliveries to this receiver")
    .action(({ account, since, origin = "" }: { account: string; since: Date; origin?: string }) =>
      run(async (webhooks) => {
        const request = { accountId: account, since: timestampFromDate(since), origin };
        return sentAgain((await webhooks.resendFailed(request)).deliveryCount);
      }),
    );
  group
    .command("test")
    .description("send a sample payload to an address, signed for an account")
    .requiredOption("--account <account>", "account id")
    .requiredOption("--url <url>", "https address")
    .addOption(
      new Option("--status <status>", "status of the sample (default: completed)").choices(
        Object.keys(statuses),
      ),
    )
    .action(({ account, url, status = "completed" }: TestOptions) =>
      run((webhooks) => sendTest(webhooks, { accountId: account, url, status: statuses[status] })),
    );
}

interface TestOptions {
  readonly account: string;
  readonly url: string;
  readonly status?: keyof typeof statuses;
}

/** Maximum wait for a test event: one attempt, plus the time until a running gateway notices it. */
const testWaitMs = 8_000;
const testPauseMs = 100;

/** Sends a test event. A running gateway delivers it, and the result is worth waiting for. */
async function sendTest(
  webhooks: Client<typeof WebhookService>,
  request: { readonly accountId: string; readonly url: string; readonly status: WebhookStatus },
): Promise<Output> {
  const { delivery } = await webhooks.sendTestEvent(request);
  const deliveryId = delivery?.deliveryId ?? "";
  for (const end = Date.now() + testWaitMs; ; ) {
    const found = await webhooks.getDelivery({ deliveryId });
    const isOver = found.delivery?.endTime !== undefined;
    if (isOver || Date.now() > end) {
      const isDelivered = found.delivery?.state === DeliveryState.DELIVERED;
      return { ...deliveryFacts(found), exitCode: isDelivered ? 0 : 1 };
    }
    await new Promise((resolve) => setTimeout(resolve, testPauseMs));
  }
}

function addEndpointCommands({ group, run }: Group): void {
  group
    .command("endpoints")
    .description("list the receivers of an account and their state")
    .requiredOption("--account <account>", "account id")
    .action(({ account }: { readonly account: string }) =>
      run(async (webhooks) => {
        const endpoints = await everyPage(Infinity, async (page) => {
          const response = await webhooks.listEndpoints({ accountId: account, ...page });
          return { items: response.endpoints, nextPageToken: response.nextPageToken };
        });
        return endpointList(endpoints);
      }),
    );
  group
    .command("enable")
    .description("mark a receiver as healthy and send its pending and parked deliveries")
    .requiredOption("--account <account>", "account id")
    .requiredOption("--origin <origin>", "the receiver, such as https://hooks.example.com")
    .action(({ account, origin }: { readonly account: string; readonly origin: string }) =>
      run(async (webhooks) => {
        const { endpoint } = await webhooks.reenableEndpoint({ accountId: account, origin });
        return endpointList(endpoint === undefined ? [] : [endpoint]);
      }),
    );
}

function timeArgument(text: string): Date {
  const time = new Date(text);
  if (/^\d{4}-\d{2}-\d{2}/.test(text) && !Number.isNaN(time.getTime())) return time;
  throw new InvalidArgumentError("Write a date or a time such as 2027-01-31T09:00:00Z.");
}
