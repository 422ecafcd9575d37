/** A database with the webhook room's tables, and short words for what the tests do with it. */
import { MikroORM } from "@mikro-orm/postgresql";
import { Pool } from "pg";
import { ormOptions } from "../../../src/db/database.ts";
import { createGuardedClient, type GuardedClient } from "../../../src/http/guarded-client.ts";
import { GuardFailure, type GuardFailureKind } from "../../../src/http/guard-failure.ts";
import { createDispatcher, type Dispatcher } from "../../../src/webhook/dispatcher.ts";
import type { DispatcherOptions, Finished } from "../../../src/webhook/delivery.ts";
import { enqueueWebhook, type WebhookEvent } from "../../../src/webhook/enqueue.ts";
import { createSecrets, type Secrets } from "../../../src/webhook/secrets.ts";
import { createTestDatabase } from "../../support/database.ts";
import { ca } from "../../support/receiver.ts";
import { newId } from "../../../src/core/uuid.ts";

/** See {@link openWebhooks}. */
export type Webhooks = Awaited<ReturnType<typeof openWebhooks>>;

/** An event of a test; the rest has defaults below. */
export type TestEvent = Partial<WebhookEvent> & Pick<WebhookEvent, "url">;

/** A delivery, as the tests look at it. */
export interface Stored {
  readonly id: string;
  readonly state: number;
  readonly attempts: number;
  readonly series: number;
  /** Seconds from now until it is due; may be negative. */
  readonly dueIn: number;
  readonly outcomes: readonly number[];
}

/** Reaches receivers of the tests. */
export const testClient: GuardedClient = createGuardedClient({
  allowHosts: ["localhost"],
  ca: [ca],
});

/** Opens a fresh database. Close it. */
export async function openWebhooks() {
  const database = await createTestDatabase();
  const pool = new Pool({ connectionString: database.url, max: 6 });
  pool.on("error", () => {});
  const orm = await MikroORM.init(ormOptions(database.url));
  const secrets = createSecrets({ pool, masterKey: () => Buffer.alloc(32, 7) });
  const open = new Set<Dispatcher>();
  const fakes = new Set<ReturnType<typeof fakeClient>>();
  return {
    url: database.url,
    pool,
    orm,
    secrets,
    /** Runs a dispatcher until the test's end. */
    async dispatch(options: Partial<DispatcherOptions> = {}): Promise<Running> {
      const running = await startDispatcher({ pool, url: database.url, secrets }, options);
      open.add(running.dispatcher);
      return running;
    },
    /** Enqueues an event in a separate transaction. */
    enqueue: (event: TestEvent) =>
      inTransaction(pool, (client) => enqueueWebhook(client, eventOf(event))),
    stored: (id: string | undefined) => stored(pool, id ?? ""),
    /** Makes a delivery due now. */
    async age(id: string | undefined): Promise<void> {
      await pool.query("update webhook_delivery set due = now() where id = $1", [id]);
    },
    /** Receivers that do not exist; see {@link fakeClient}. */
    fake(auto?: (url: string) => number | undefined) {
      const fake = fakeClient(auto);
      fakes.add(fake);
      return fake;
    },
    /** Stops every dispatcher; what still waits for an answer gets one. */
    async stopAll(): Promise<void> {
      const stopping = [...open].map((dispatcher) => dispatcher.stop());
      for (const fake of fakes) fake.end();
      await Promise.all(stopping);
      open.clear();
      fakes.clear();
    },
    async close(): Promise<void> {
      await orm.close(true);
      await pool.end();
      await database.close();
    },
  };
}

/** A dispatcher at work. */
export interface Running {
  readonly dispatcher: Dispatcher;
  /** The attempts that have ended so far. */
  readonly finished: readonly Finished[];
  /** Resolves when `count` attempts have ended. */
  readonly ended: (count: number) => Promise<readonly Finished[]>;
}

async function startDispatcher(
  needs: { readonly pool: Pool; readonly url: string; readonly secrets: Secrets },
  options: Partial<DispatcherOptions>,
): Promise<Running> {
  const finished: Finished[] = [];
  const waiting = new Set<() => void>();
  const dispatcher = createDispatcher({
    ...needs,
    client: testClient,
    random: () => 0.5,
    warn: (message, { err }) => void process.stderr.write(`${message}: ${String(err)}\n`),
    ...options,
    timings: { scanMs: 20, ...options.timings },
    onAttempt(attempt) {
      finished.push(attempt);
      options.onAttempt?.(attempt);
      for (const look of waiting) look();
    },
  });
  await dispatcher.start();
  return {
    dispatcher,
    finished,
    ended: (count) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (finished.length < count) return;
          waiting.delete(look);
          resolve(finished);
        };
        waiting.add(look);
        look();
      }),
  };
}

/** A whole event. Default: completed, of a new task and account. */
export function eventOf(event: TestEvent): WebhookEvent {
  return {
    accountId: newId(),
    taskId: newId(),
    callbackId: "callback",
    status: "completed",
    progress: event.status === "progress" ? 50 : 100,
    resultUrl: null,
    resultContent: "text",
    error: null,
    errorCode: null,
    usage: { promptTokens: 1, completionTokens: 2, totalTokens: 3 },
    time: new Date("2026-11-21T09:30:00.000Z"),
    modelKey: "model",
    requestId: "request",
    ...event,
  };
}

/** Runs work between begin and commit. */
export async function inTransaction<Result>(
  pool: Pool,
  work: (client: Parameters<typeof enqueueWebhook>[0]) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect();
  try {
    await client.query("begin");
    const result = await work(client);
    await client.query("commit");
    return result;
  } finally {
    await client.query("rollback");
    client.release();
  }
}

async function stored(pool: Pool, id: string): Promise<Stored> {
  const { rows } = await pool.query<Stored>(
    `select id, state, attempts, series, extract(epoch from due - now())::float as "dueIn",
       array(select outcome::int from webhook_attempt where delivery_id = id order by number) as outcomes
     from webhook_delivery where id = $1`,
    [id],
  );
  if (rows[0] === undefined) throw new Error(`no delivery ${id}`);
  return rows[0];
}

/** A request that a fake receiver holds. */
export interface Held {
  readonly url: string;
  readonly body: {
    readonly status: string;
    readonly progress: number;
    readonly external_data: { readonly task_id: string };
  };
  /** Answers it. */
  readonly answer: (status: number | GuardFailureKind) => void;
}

/** A client whose requests wait until the test answers them; `auto` answers by itself. */
function fakeClient(auto: (url: string) => number | undefined = () => undefined) {
  const held: Held[] = [];
  const times = {
    dnsMs: 0,
    connectMs: 0,
    tlsMs: 0,
    firstByteMs: 0,
    totalMs: 0,
    addressClass: "none",
  } as const;
  const waiting = new Set<() => void>();
  let isOver = false;
  const client: GuardedClient = {
    send: ({ url, body }) =>
      new Promise((resolve) => {
        const answer: Held["answer"] = (status) => {
          const outcome =
            typeof status === "number" ? { status, headers: {} } : new GuardFailure(status, "fake");
          resolve({ outcome, times });
        };
        const status = auto(url);
        if (status !== undefined) return answer(status);
        if (isOver) return answer("aborted");
        held.push({ url, body: JSON.parse(Buffer.from(body ?? []).toString()), answer });
        for (const look of waiting) look();
      }),
  };
  return {
    client,
    held,
    /** Answers everything, from now on too. */
    end(): void {
      isOver = true;
      for (const { answer } of held) answer("aborted");
    },
    /** Resolves when so many requests have come. */
    came: (count: number) =>
      new Promise<readonly Held[]>((resolve) => {
        const look = (): void => {
          if (held.length < count) return;
          waiting.delete(look);
          resolve(held);
        };
        waiting.add(look);
        look();
      }),
  };
}
