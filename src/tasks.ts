/** Puts the task room together: its reads for whoever has the database, all of it for a server. */
import { TaskService } from "../gen/uas/task/v1/task_service_pb.ts";
import { ModelType } from "../gen/uas/inference/v1/model_pb.ts";
import { holdAmount } from "./billing/price.ts";
import type { PriceBook } from "./billing/price-book.ts";
import type { Config } from "./config/config.ts";
import { priceAt } from "./config/price.ts";
import type { Database } from "./db/database.ts";
import { ErrorCode, GatewayError } from "./errors.ts";
import type { BackgroundTasks } from "./inference/background/tasks.ts";
import { createCatalogue } from "./inference/catalogue.ts";
import { admitModel } from "./inference/pipeline/admit.ts";
import type { Metrics } from "./metrics.ts";
import { type Service, serve } from "./rpc/service.ts";
import { type Callbacks, createCallbacks } from "./task/callbacks.ts";
import { createBackgroundTasks } from "./task/background.ts";
import { createCancel } from "./task/cancel.ts";
import { TaskFeed } from "./task/feed.ts";
import { createTaskReads } from "./task/reads.ts";
import type { TaskRow } from "./task/task-row.ts";
import type { WorkerOptions } from "./task/worker-options.ts";
import { createTaskSchemas } from "./task/schema/schemas.ts";
import { createTaskService } from "./task/service.ts";
import { createTaskStore } from "./task/store.ts";
import { createSubmit, openSubmitPool, type TaskPricing } from "./task/submit.ts";
import { Parking } from "./task/wait.ts";
import type { Vendor } from "./vendor/vendor.ts";

/** What a server needs of the rest. */
export interface TaskOptions {
  readonly database: Database;
  readonly config: Config;
  readonly vendors: ReadonlyMap<string, Vendor>;
  readonly prices: PriceBook;
  readonly metrics: Metrics;
  /** Called when there is something new to work on. Default: who works on tasks finds it by itself. */
  readonly onNews?: () => void;
  /** Called when a task that runs is asked to end. Default: who works on it finds it by itself. */
  readonly onCancel?: (taskId: string) => void;
  /** Tasks that were submitted in their vendor's own form. Default: there are none. */
  readonly native?: Pick<WorkerOptions, "natives" | "tell">;
}

/** The task room of a server. */
export interface TaskRoom {
  readonly service: Service;
  /** Takes what vendors tell of tasks by themselves. */
  readonly callbacks: Callbacks;
  /** Runs responses in the background. */
  readonly background: BackgroundTasks;
  start(): Promise<void>;
  /** Answers polls that wait, and closes what was opened. */
  stop(): Promise<void>;
}

/** Makes it. */
export function createTaskRoom(options: TaskOptions): TaskRoom {
  const { database, config, vendors, prices, metrics, onNews, onCancel } = options;
  const { pool, url } = database;
  const { allowHosts } = config.webhooks;
  const store = createTaskStore(pool);
  const submits = openSubmitPool(url);
  const feed = new TaskFeed({ url });
  const parking = new Parking();
  const tasksOf = (vendor: string) => vendors.get(vendor)?.tasks;
  const canStop = ({ type, vendor, path }: TaskRow): boolean => {
    if (path !== null) return options.native?.natives?.get(vendor)?.tasks.canCancel ?? false;
    return type === ModelType.TEXT || (tasksOf(vendor)?.canCancel ?? false);
  };
  const tell = options.native?.tell;
  const onAsked = ({ id }: Pick<TaskRow, "id">): void => {
    onCancel?.(id);
    onNews?.();
  };
  const catalogue = createCatalogue(config.models);
  const submit = createSubmit({
    pool: submits,
    pricing: createTaskPricing(prices),
    onAccepted: onNews,
  });
  const cancel = createCancel({ pool, store, canStop, onAsked, ...(tell && { tell }) });
  const service = createTaskService({
    store,
    feed,
    parking,
    allowHosts,
    authorize: (caller, modelKey) => admitModel(catalogue, caller, modelKey),
    schemas: createTaskSchemas({ tasksOf: ({ vendor }) => tasksOf(vendor), allowHosts }),
    submit,
    cancel,
  });
  metrics.gauge(
    "uas_task_polls_waiting",
    "Polls and watches of tasks that wait for a change.",
    () => parking.count,
  );
  return {
    service: serve(TaskService, service),
    callbacks: createCallbacks({ pool, tasksOf, onNews }),
    background: createBackgroundTasks({ submit, cancel, store, feed, parking }),
    start: () => feed.start(),
    async stop() {
      await Promise.all([feed.close(), submits.end()]);
    },
  };
}

/** What can be read of tasks without a running server. The rest refuses. */
export function createTaskReading({ pool }: Database): Service {
  const reads = createTaskReads({ store: createTaskStore(pool) });
  const refuse = (): never => {
    throw new GatewayError(ErrorCode.SERVICE_UNAVAILABLE, "This needs a running gateway");
  };
  return serve(TaskService, {
    ...reads,
    submitTask: refuse,
    cancelTask: refuse,
    getModelSchema: refuse,
  });
}

/** Prices, as tasks are held by them. */
export function createTaskPricing(prices: PriceBook): TaskPricing {
  return {
    priceAt: (model, timeMs) => priceAt(model.prices, timeMs),
    version: (price) => prices.version(price),
    holdUnits: (price, units, discountBp) => holdAmount({ price, ...units, discountBp }),
  };
}
