/**
 * The task room behind a real REST listener, on a real database with real money, without workers.
 */
import { Admission } from "../../../src/calls/admission.ts";
import { createCatalogue } from "../../../src/calls/catalogue.ts";
import { RunningCalls } from "../../../src/calls/running-calls.ts";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { randomUUID } from "node:crypto";
import type { JsonObject } from "@bufbuild/protobuf";
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { Pool } from "pg";
import { pino } from "pino";
import { LedgerKind } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { TaskService } from "../../../gen/uas/task/v1/task_service_pb.ts";
import { auditLedger } from "../../../src/billing/audit/audit.ts";
import { book } from "../../../src/billing/ledger/booking.ts";
import { createPriceBook } from "../../../src/billing/prices/pricing.ts";
import { callerKey, type KeyCaller, operator } from "../../../src/core/caller.ts";
import type { Config, ModelConfig, PriceConfig } from "../../../src/config/config.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { RequestLog } from "../../../src/edge/request-log.ts";
import { createFacade } from "../../../src/edge/rest/facade.ts";
import { createMetrics } from "../../../src/observe/metrics.ts";
import { BodyBudget } from "../../../src/edge/bodies/body-budget.ts";
import { createDirectTransport } from "../../../src/edge/rpc/direct-transport.ts";
import { createErrorMapping, requestId } from "../../../src/edge/rpc/interceptors.ts";
import { chargeOf } from "../../../src/task/work/charge.ts";
import { type TransitionColumns, applyTransition } from "../../../src/task/transition.ts";
import type { TaskEvent } from "../../../src/task/state.ts";
import { type StoredResultJson, taskColumns, type WholeTask } from "../../../src/task/task-row.ts";
import { createTaskRoom } from "../../../src/task/module.ts";
import type { VendorTasks } from "../../../src/provider/task.ts";
import type { Vendor } from "../../../src/provider/vendor.ts";
import { createTestDatabase } from "../../support/database.ts";
import { always } from "../../support/gateway.ts";
import { send } from "../../support/raw-http.ts";

/** 0.04 USD a picture, 0.4 a second. */
const price: PriceConfig = {
  input: 1_000_000_000n,
  cachedInput: undefined,
  cacheWrite: undefined,
  output: 2_000_000_000n,
  image: 40_000_000n,
  second: 400_000_000n,
  request: undefined,
};

export const imageNanos = 40_000_000n;

const vendorTasks: VendorTasks = {
  resubmit: "blind",
  types: new Set([ModelType.IMAGE, ModelType.VIDEO]),
  canCancel: false,
  submit: () => Promise.reject(new Error("nobody works on tasks here")),
  units: ({ n = 1, duration = 8 }) => ({ images: Number(n), seconds: Number(duration) }),
};

const vendors: Readonly<Record<string, VendorTasks>> = {
  fixed: { ...vendorTasks, units: ({ n = 1 }) => ({ images: Number(n) }) },
  stoppable: { ...vendorTasks, canCancel: true },
};

/** There are no models here, only tasks. */
const notServed = (): Promise<never> => Promise.reject(new Error("not served here"));

function model(key: string, type: ModelType, vendor: string): ModelConfig {
  return {
    key,
    name: key,
    type,
    routes: [{ vendor, model: "vendor-model" }],
    maxOutputTokens: type === ModelType.TEXT ? 1_000 : 0,
    holdOutputTokens: 1_000,
    prices: always(price),
  };
}

const models = [
  model("image", ModelType.IMAGE, "fixed"),
  model("acme/film", ModelType.VIDEO, "stoppable"),
  model("text", ModelType.TEXT, "fixed"),
  model("sound", ModelType.AUDIO, "fixed"),
  model("closed", ModelType.IMAGE, "fixed"),
];

/** A customer in a test. */
export interface Customer extends KeyCaller {
  /** The secret. */
  readonly key: string;
}

/** A reply as JSON. */
export interface JsonReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly json: Record<string, unknown>;
}

/** The `error` member of a reply. */
export function errorOf(json: Record<string, unknown>): Record<string, unknown> {
  return json["error"] as Record<string, unknown>;
}

/** See {@link openTasks}. */
export type Tasks = Awaited<ReturnType<typeof openTasks>>;

/** Opens it. Close it: that checks the books. */
export async function openTasks() {
  const database = await createTestDatabase();
  const pool = new Pool({ connectionString: database.url, max: 20 });
  pool.on("error", () => {});
  const metrics = createMetrics();
  const callers = new Map<string, KeyCaller>();
  const config = {
    models: new Map(models.map((each) => [each.key, each])),
    webhooks: { allowHosts: ["receiver.test"], caFile: undefined },
    console: { signUp: true, copyAgain: true },
    sms: undefined,
  } as unknown as Config;
  const dialects = new Set([Dialect.CHAT_COMPLETIONS]);
  const named = Object.entries(vendors).map(
    ([name, tasks]) => [name, { name, tasks, dialects }] as const,
  );
  const room = createTaskRoom({
    database: { taskPool: pool, url: database.url } as Parameters<
      typeof createTaskRoom
    >[0]["database"],
    clock: systemClock,
    config,
    admission: new Admission({
      catalogue: createCatalogue(config),
      calls: new RunningCalls(),
    }),
    vendors: new Map(named) as unknown as ReadonlyMap<string, Vendor>,
    prices: createPriceBook({ pool }),
    metrics,
    results: { find: async () => undefined },
  });
  await room.start();
  const log = pino({ level: "silent" });
  const stopping = new AbortController();
  const facade = await createFacade({
    services: [TaskService],
    transport: createDirectTransport([room.service], [requestId, createErrorMapping(log)]),
    authenticate: async (key) => callers.get(key),
    metrics,
    log,
    requests: new RequestLog(log),
    isOpen: () => true,
    requireCapacity: () => {},
    stopping: stopping.signal,
    whyNotReady: async () => undefined,
    findFile: async () => undefined,
    direct: { wire: new Map(), native: notServed, followLink: notServed },
    bodies: new BodyBudget(),
    natives: () => [],
    trustProxy: [],
  });
  const url = await facade.listen({ host: "127.0.0.1", port: 0 });
  const asOperator: Interceptor = (next) => (request) => {
    request.contextValues.set(callerKey, operator);
    return next(request);
  };
  const operatorTransport = createDirectTransport(
    [room.service],
    [requestId, createErrorMapping(log), asOperator],
  );
  return {
    pool,
    stopping,
    /** A metric without labels, as it is now. */
    async metric(name: string): Promise<number | undefined> {
      const { values } = (await metrics.registry.getSingleMetric(name)?.get()) ?? { values: [] };
      return values[0]?.value;
    },
    operator: createClient(TaskService, operatorTransport),
    /** The service, called by a customer without HTTP. */
    clientOf(customer: KeyCaller): Client<typeof TaskService> {
      const as: Interceptor = (next) => (request) => {
        request.contextValues.set(callerKey, customer);
        return next(request);
      };
      return createClient(
        TaskService,
        createDirectTransport([room.service], [requestId, createErrorMapping(log), as]),
      );
    },
    async customer(
      balanceNanos = 10_000_000_000n,
      more: Partial<KeyCaller> = {},
    ): Promise<Customer> {
      const accountId = randomUUID();
      const caller: KeyCaller = {
        kind: "key",
        accountId,
        keyId: randomUUID(),
        models: new Set(["image", "acme/film", "text", "sound"]),
        ...more,
      };
      if (balanceNanos > 0n) {
        await book(pool, {
          kind: LedgerKind.TOP_UP,
          accountId,
          amountNanos: balanceNanos,
          reference: "test",
        });
      }
      const key = randomUUID();
      callers.set(key, caller);
      return { ...caller, key };
    },
    /** A request with a customer's key; a body that is no text is sent as JSON. */
    async send(
      customer: Customer,
      path: string,
      request: {
        readonly method?: string;
        readonly headers?: Readonly<Record<string, string>>;
        readonly body?: JsonObject | string;
      } = {},
    ): Promise<JsonReply> {
      const { method = request.body === undefined ? "GET" : "POST", body } = request;
      const headers = {
        authorization: `Bearer ${customer.key}`,
        ...(body !== undefined && { "content-type": "application/json" }),
        ...request.headers,
      };
      const text = typeof body === "object" ? JSON.stringify(body) : body;
      const reply = await send(`${url}${path}`, {
        method,
        headers,
        ...(text !== undefined && { body: text }),
      });
      const json = reply.body.length === 0 ? {} : JSON.parse(reply.body.toString());
      return { status: reply.status, headers: reply.headers, json };
    },
    /** Submits a picture and returns its id. */
    async submit(customer: Customer, body: JsonObject = {}): Promise<string> {
      const all = { modelKey: "image", imageParams: { prompt: "p" }, ...body };
      const { status, json } = await this.send(customer, "/api/ai/tasks", { body: all });
      if (status !== 200) throw new Error(`${status}: ${JSON.stringify(json)}`);
      return String(json["taskId"]);
    },
    /** Moves a task, as a worker does. @returns `undefined`: it was too late */
    move: (change: Change) => move(pool, change),
    end: (end: End) => endTask(pool, end),
    /** Brings a task to where its vendor has it. */
    async run(taskId: string, vendor = "fixed"): Promise<void> {
      await move(pool, { taskId, event: "claim" });
      await move(pool, { taskId, event: "accept", set: { vendor, vendor_task_id: "v1" } });
    },
    async money(accountId: string): Promise<readonly [available: bigint, held: bigint]> {
      const text = "select available, held from balance where account_id = $1";
      const { rows } = await pool.query<{ available: string; held: string }>(text, [accountId]);
      return [BigInt(rows[0]?.available ?? 0), BigInt(rows[0]?.held ?? 0)];
    },
    async close(): Promise<void> {
      stopping.abort();
      await facade.close();
      await room.stop();
      const findings = await auditLedger(pool);
      await pool.end();
      await database.close();
      if (findings.length > 0) throw new Error(JSON.stringify(findings));
    },
  };
}

/** A change of a task that does not end it. */
export interface Change {
  readonly taskId: string;
  readonly event: Exclude<TaskEvent, "complete" | "fail" | "cancel">;
  readonly set?: TransitionColumns;
}

/** The end of a task. */
export type End = { readonly taskId: string; readonly fence?: number } & (
  | { readonly event: "complete"; readonly result: StoredResultJson }
  | { readonly event: "fail"; readonly errorCode: string; readonly error: string }
  | { readonly event: "cancel" }
);

async function find(pool: Pool, taskId: string): Promise<WholeTask> {
  const { rows } = await pool.query<WholeTask>(`select ${taskColumns} from task where id = $1`, [
    taskId,
  ]);
  if (rows[0] === undefined) throw new Error(`no task ${taskId}`);
  return rows[0];
}

async function move(
  pool: Pool,
  { taskId, event, set = {} }: Change,
): ReturnType<typeof applyTransition> {
  if (event !== "claim") return applyTransition({ pool }, await find(pool, taskId), { event, set });
  // As workers do: the fence grows with the claim.
  const { rows } = await pool.query<WholeTask>(
    `update task set state = 'submitting', fence = fence + 1, vendor = coalesce($2, vendor)
     where id = $1 and state = 'queued' returning ${taskColumns}`,
    [taskId, set.vendor],
  );
  return rows[0];
}

async function endTask(pool: Pool, end: End): ReturnType<typeof applyTransition> {
  const { taskId, event, fence } = end;
  const found = await find(pool, taskId);
  const task = { ...found, fence: fence ?? found.fence };
  const isDone = event === "complete";
  const charge = chargeOf(task, {
    ...(isDone && { outcome: { files: [], units: { images: 1 } }, price }),
    errorCode: event === "fail" ? end.errorCode : "",
    ending: isDone ? CallEnding.COMPLETED : CallEnding.UPSTREAM_FAILED,
    status: 200,
  });
  const usage = JSON.stringify({ inputTokens: 7, outputTokens: 0 });
  const set = {
    ...(isDone && { result: JSON.stringify(end.result), usage }),
    ...(event === "fail" && { error_code: end.errorCode, error: end.error }),
  };
  return applyTransition({ pool }, task, { event, set, charge });
}
