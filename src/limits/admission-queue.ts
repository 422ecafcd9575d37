/**
 * Lets calls of an account wait a short time for capacity, if its operator allows it, instead of an
 * immediate 429. Each process has a queue for each account: keys take turns, and the calls of a key
 * keep their order.
 *
 * A waiting call uses neither money nor a vendor's slot, and counts against no limit. It is tried
 * again when a call of its account ends, when its limit has capacity again, and a few times a
 * second, because calls of other processes end too.
 */
import type { CancelSignal } from "../core/cancel-signal.ts";
import type { Limiter, LimitedRequest, LimitRefusal, Ticket } from "./limiter.ts";

/** A call that may wait. */
export interface QueuedRequest extends LimitedRequest {
  readonly accountId: string;
  readonly keyId: string;
  /** Maximum time it may wait. */
  readonly waitMs: number;
  /** Ends the wait: the client has disconnected, or the gateway stops. */
  readonly signal: CancelSignal;
}

/**
 * Maximum number of an account's calls that wait in a process; further ones are refused at once.
 */
export const waitingMax = 100;

/** Interval of attempts for a call whose capacity depends on running calls. */
const retryMs = 100;

interface Waiter extends QueuedRequest {
  readonly untilMs: number;
  /** Why it waits. */
  refusal: LimitRefusal;
  isDone: boolean;
  /** Ends the wait. */
  settle(verdict: Ticket | LimitRefusal): void;
  fail(error: unknown): void;
}

interface Queue {
  /** The waiting calls of each key, in their order. The keys are in the order of their turns. */
  readonly keys: Map<string, Waiter[]>;
  size: number;
  /** Time until which the account's limit is exhausted; 0 if it may have capacity. */
  fullUntilMs: number;
  /** The last refusal by the account's limit: while calls wait, all keys queue. */
  refusal: LimitRefusal | undefined;
  /** Time until which other limits of a key's calls have no capacity. */
  readonly fullKeys: Map<string, number>;
  isTrying: boolean;
  timer: NodeJS.Timeout | undefined;
}

/** The queues of a process. */
export class AdmissionQueues {
  readonly #limiter: Pick<Limiter, "admit" | "end">;
  readonly #queues = new Map<string, Queue>();

  constructor(limiter: Pick<Limiter, "admit" | "end">) {
    this.#limiter = limiter;
  }

  /** Number of waiting calls of an account in this process. */
  waiting(accountId: string): number {
    return this.#queues.get(accountId)?.size ?? 0;
  }

  /**
   * Decides about a request, after a wait if there is no capacity. If it is refused, returns its
   * last refusal.
   *
   * @throws GatewayError as {@link Limiter.admit}
   */
  async admit(request: QueuedRequest): Promise<Ticket | LimitRefusal> {
    const before = this.#before(request);
    if (before !== undefined) return this.#wait(request, before);
    const verdict = await this.#limiter.admit(request);
    if (verdict.isAdmitted) return verdict;
    const waited = this.#wait(request, verdict);
    const queue = this.#queues.get(request.accountId);
    if (queue !== undefined) pause(queue, request, verdict);
    return waited;
  }

  /** A call of the account has ended: there may be room. */
  onEnd(accountId: string): void {
    const queue = this.#queues.get(accountId);
    if (queue === undefined) return;
    if (queue.refusal?.reason !== "requests") queue.fullUntilMs = 0;
    for (const [keyId, [first]] of queue.keys) {
      if (first?.refusal.reason !== "requests") queue.fullKeys.delete(keyId);
    }
    void this.#serve(accountId, queue);
  }

  /**
   * The reason why the request must queue behind others, with its minimum wait. Undefined if it
   * need not wait.
   */
  #before({ accountId, keyId }: QueuedRequest): LimitRefusal | undefined {
    const queue = this.#queues.get(accountId);
    const refusal = queue?.keys.get(keyId)?.[0]?.refusal ?? queue?.refusal;
    if (queue === undefined || refusal === undefined) return undefined;
    const untilMs =
      refusal.subject.kind === "account" ? queue.fullUntilMs : (queue.fullKeys.get(keyId) ?? 0);
    return { ...refusal, retryMs: Math.max(0, untilMs - performance.now()) };
  }

  #wait(request: QueuedRequest, refusal: LimitRefusal): Promise<Ticket | LimitRefusal> {
    const { accountId, keyId, waitMs, signal } = request;
    const nowMs = performance.now();
    const untilMs = nowMs + waitMs;
    const isFull = this.waiting(accountId) >= waitingMax;
    if (isFull || signal.aborted || isHopeless(request, refusal, waitMs)) {
      return Promise.resolve(refusal);
    }
    const queue = this.#queues.getOrInsertComputed(accountId, newQueue);
    return new Promise((resolve, reject) => {
      const leave = (): void => this.#leave(accountId, queue, waiter);
      const timer = setTimeout(() => waiter.settle(waiter.refusal), waitMs);
      const onAbort = (): void => waiter.settle(waiter.refusal);
      const end = (): void => {
        waiter.isDone = true;
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
        leave();
      };
      const waiter: Waiter = {
        subjects: request.subjects,
        tokens: request.tokens,
        accountId,
        keyId,
        waitMs,
        signal,
        untilMs,
        refusal,
        isDone: false,
        settle(verdict) {
          end();
          resolve(verdict);
        },
        fail(error) {
          end();
          reject(error);
        },
      };
      signal.addEventListener("abort", onAbort);
      queue.keys.getOrInsertComputed(keyId, () => []).push(waiter);
      queue.size++;
      // After the caller has set the refusal.
      queueMicrotask(() => this.#arm(accountId, queue));
    });
  }

  #leave(accountId: string, queue: Queue, waiter: Waiter): void {
    const line = queue.keys.get(waiter.keyId) ?? [];
    line.splice(line.indexOf(waiter), 1);
    queue.size--;
    if (line.length === 0) {
      queue.keys.delete(waiter.keyId);
      queue.fullKeys.delete(waiter.keyId);
    }
    if (queue.size > 0) return;
    clearTimeout(queue.timer);
    this.#queues.delete(accountId);
  }

  /**
   * Tries the first calls of the keys, in turns, one at a time, while there is capacity. Never
   * rejects.
   */
  async #serve(accountId: string, queue: Queue): Promise<void> {
    if (queue.isTrying) return;
    queue.isTrying = true;
    for (let waiter = next(queue); waiter !== undefined; waiter = next(queue)) {
      await this.#try(queue, waiter);
    }
    queue.isTrying = false;
    this.#arm(accountId, queue);
  }

  async #try(queue: Queue, waiter: Waiter): Promise<void> {
    try {
      const verdict = await this.#limiter.admit(waiter);
      if (verdict.isAdmitted) {
        // The key's next turn comes after the turns of the others.
        const line = queue.keys.get(waiter.keyId);
        queue.keys.delete(waiter.keyId);
        if (line !== undefined) queue.keys.set(waiter.keyId, line);
        // The caller stopped waiting during the attempt.
        if (waiter.isDone) this.#limiter.end(verdict, 0);
        else waiter.settle(verdict);
        return;
      }
      waiter.refusal = verdict;
      pause(queue, waiter, verdict);
      const leftMs = waiter.untilMs - performance.now();
      if (!waiter.isDone && isHopeless(waiter, verdict, leftMs)) waiter.settle(verdict);
    } catch (error) {
      if (!waiter.isDone) waiter.fail(error);
    }
  }

  /** Tries again when the first limit may have capacity. */
  #arm(accountId: string, queue: Queue): void {
    clearTimeout(queue.timer);
    if (queue.size === 0 || queue.isTrying) return;
    const times = [...queue.keys.keys()].map((keyId) =>
      Math.max(queue.fullUntilMs, queue.fullKeys.get(keyId) ?? 0),
    );
    const delayMs = Math.max(0, Math.min(...times) - performance.now());
    queue.timer = setTimeout(() => void this.#serve(accountId, queue), Math.ceil(delayMs));
  }
}

function newQueue(): Queue {
  return {
    keys: new Map(),
    size: 0,
    fullUntilMs: 0,
    refusal: undefined,
    fullKeys: new Map(),
    isTrying: false,
    timer: undefined,
  };
}

/** The first call in turn; undefined if no limit has capacity now. */
function next({ keys, fullUntilMs, fullKeys }: Queue): Waiter | undefined {
  const nowMs = performance.now();
  if (fullUntilMs > nowMs) return undefined;
  for (const [keyId, [first]] of keys) {
    if ((fullKeys.get(keyId) ?? 0) <= nowMs) return first;
  }
  return undefined;
}

/** Stores the time until which a refusal reports no capacity. */
function pause(queue: Queue, { keyId }: QueuedRequest, refusal: LimitRefusal): void {
  const pauseMs = refusal.reason === "requests" ? refusal.retryMs : retryMs;
  const untilMs = performance.now() + pauseMs;
  if (refusal.subject.kind === "account") {
    queue.refusal = refusal;
    queue.fullUntilMs = untilMs;
  } else queue.fullKeys.set(keyId, untilMs);
}

/**
 * Whether waiting cannot help: used requests never become free before their minute ends, and a
 * request may be larger than its limit.
 */
function isHopeless(
  { tokens }: LimitedRequest,
  { reason, retryMs: roomMs, subject }: LimitRefusal,
  leftMs: number,
): boolean {
  if (reason === "requests") return roomMs > leftMs;
  return reason === "tokens" && tokens > (subject.limits.tpm ?? Infinity);
}
