/**
 * Customers of gateways whose database fails: calls, streams, tasks and top-ups, and their answers.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { isWholeStream } from "../chaos/gateway-work.ts";
import { send } from "../../support/raw-http.ts";

/** Requests of customers. */
export const kinds = ["json", "stream", "task", "top-up"] as const;
export type Kind = (typeof kinds)[number];

/** One attempt, as its customer saw it. */
export interface Attempt {
  readonly kind: Kind;
  /** The request id, or the reference of a top-up. */
  readonly id: string;
  /** The number of the gateway. */
  readonly gateway: number;
  readonly startMs: number;
  readonly endMs: number;
  /** Whether the whole answer came, and was a success. */
  readonly isAcknowledged: boolean;
  /** 0: the connection broke, or nothing came in time. */
  readonly status: number;
  /** Whether its gateway was killed meanwhile. */
  readonly isKilled: boolean;
}

/** A gateway as customers and operators reach it. */
export interface Address {
  readonly url: string;
  readonly internalUrl: string;
}

/** Origin of a request. */
export interface Customer {
  readonly accountId: string;
  readonly key: string;
}

/** Amount of each top-up. */
export const topUpNanos = 1_000_000_000n;

/** The operator's token. */
export const operatorToken = "ha-operator-6f1d";

/** Time after which a customer considers a gateway hung, far above the promised limit. */
export const hungMs = 30_000;

/** Pauses between two attempts of one customer. */
const pauseMs = 20;

/** Calls an RPC as the operator. @throws if it is refused */
export async function callAsOperator(
  { internalUrl }: Address,
  method: string,
  request: object,
): Promise<Record<string, unknown>> {
  const { status, body } = await post(`${internalUrl}/${method}`, operatorToken, request);
  if (status !== 200) throw new Error(`${method}: ${status} ${body.toString()}`);
  return JSON.parse(body.toString()) as Record<string, unknown>;
}

/** An account with money, and its key. */
export async function createCustomer(address: Address): Promise<Customer> {
  const created = await callAsOperator(address, "uas.account.v1.AccountService/CreateAccount", {
    name: "customer",
  });
  const { accountId } = created["account"] as { readonly accountId: string };
  await topUp(address, accountId, "first");
  const made = await callAsOperator(address, "uas.key.v1.KeyService/CreateKey", { accountId });
  return { accountId, key: String(made["secret"]) };
}

/** Runs customers, one of each kind at each gateway, until stopped. */
export class Load {
  readonly attempts: Attempt[] = [];
  readonly #stop = new AbortController();
  readonly #running: readonly Promise<void>[];
  /** The numbers of the gateways that are being killed. */
  readonly #left = new Set<number>();

  constructor(addresses: readonly Address[], customer: Customer) {
    this.#running = addresses.flatMap((address, gateway) =>
      kinds.map((kind) => this.#run({ kind, gateway, address, customer })),
    );
  }

  /**
   * Resolves when, after `sinceMs`, each kind was acknowledged `count` times at each gateway: to
   * the time of the last of these.
   */
  async acknowledged(count: number, sinceMs: number, limitMs: number): Promise<number> {
    const end = performance.now() + limitMs;
    for (; ; await sleep(20)) {
      const groups = this.#running.length - this.#left.size * kinds.length;
      const good = this.attempts.filter((one) => one.isAcknowledged && one.startMs >= sinceMs);
      const by = Map.groupBy(good, ({ kind, gateway }) => `${kind} at gateway ${gateway}`);
      const whole = [...by.values()].filter((group) => group.length >= count);
      if (whole.length >= groups) {
        return Math.max(...whole.map((group) => group[count - 1]?.endMs ?? 0));
      }
      if (performance.now() > end) {
        const seen = [...by].map(([name, { length }]) => `${name}: ${length}`).join(", ");
        throw new Error(`service does not resume within ${limitMs} ms; acknowledged: ${seen}`);
      }
    }
  }

  /**
   * Sends nothing more to a gateway that is about to be killed. What fails from now on there is no
   * attempt that counts.
   */
  leave(gateway: number): void {
    this.#left.add(gateway);
  }

  /** Resolves when the last attempt has ended. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#running);
  }

  async #run(parts: {
    readonly kind: Kind;
    readonly gateway: number;
    readonly address: Address;
    readonly customer: Customer;
  }): Promise<void> {
    const { kind, gateway } = parts;
    while (!this.#stop.signal.aborted && !this.#left.has(gateway)) {
      const id = randomUUID();
      const startMs = performance.now();
      const status = await attempt(id, parts).catch(() => 0);
      const endMs = performance.now();
      const isAcknowledged = status === 200;
      const isKilled = !isAcknowledged && this.#left.has(gateway);
      const seen = { kind, id, gateway, startMs, endMs, isAcknowledged, status, isKilled };
      this.attempts.push(seen);
      await sleep(pauseMs);
    }
  }
}

/** Resolves to the status; 0 if the answer did not come whole, or a stream failed. */
async function attempt(
  id: string,
  { kind, address, customer }: { kind: Kind; address: Address; customer: Customer },
): Promise<number> {
  if (kind === "top-up") return topUp(address, customer.accountId, id);
  const messages = [{ role: "user", content: "Hi" }];
  const call = { model: "m", messages, max_tokens: 20, stream: kind === "stream" };
  const task = { modelKey: "m", textParams: { prompt: "Hi", max_tokens: 20 } };
  const path = kind === "task" ? "/api/ai/tasks" : "/v1/chat/completions";
  const body = kind === "task" ? task : call;
  const reply = await post(`${address.url}${path}`, customer.key, body, id);
  // A stream that fails ends with an error event, and its connection in good order.
  const isFailed = kind === "stream" && reply.status === 200 && !isWholeStream(reply.body);
  return isFailed ? 0 : reply.status;
}

/** Sends a stream. Resolves when its gateway has died or answered. */
export async function beginStream(url: string, key: string, content: string): Promise<void> {
  const call = { model: "m", messages: [{ role: "user", content }], max_tokens: 20, stream: true };
  await post(`${url}/v1/chat/completions`, key, call).catch(() => {});
}

async function topUp(address: Address, accountId: string, reference: string): Promise<number> {
  const amount = { currencyCode: "USD", amountNanos: String(topUpNanos) };
  const { internalUrl } = address;
  const method = `${internalUrl}/uas.billing.v1.BillingService/TopUp`;
  return (await post(method, operatorToken, { accountId, amount, reference })).status;
}

async function post(
  url: string,
  bearer: string,
  body: object,
  requestId: string = randomUUID(),
): Promise<{ readonly status: number; readonly body: Buffer }> {
  const late = new AbortController();
  const timeout = sleep(hungMs, undefined, { signal: late.signal }).then(() => {
    throw new Error(`no answer within ${hungMs} ms`);
  });
  timeout.catch(() => {});
  const asked = send(url, {
    headers: {
      authorization: `Bearer ${bearer}`,
      "content-type": "application/json",
      "x-request-id": requestId,
    },
    body: JSON.stringify(body),
  });
  try {
    const reply = await Promise.race([asked, timeout]);
    return { status: reply.isCut ? 0 : reply.status, body: reply.body };
  } finally {
    late.abort();
  }
}
