/**
 * Keeps conversations with their route and credential, so that vendors' prompt caches are used, and tells the other
 * processes where they went. Notices only, and no table: a conversation whose notice is lost is chosen for again.
 */
import { hash } from "node:crypto";
import type { Pool } from "pg";
import type { Logger } from "pino";
import { singleFlight } from "../core/async.ts";
import { newId } from "../core/uuid.ts";
import { Listener } from "../db/pool/listener.ts";
import type { DatabaseAddress } from "../db/pool/server.ts";
import type { Binding } from "./attempt-plan.ts";
import type { CredentialTarget, RouteTarget, Targets } from "./targets.ts";

/** How a request is recognised as part of a conversation. */
export interface Conversation {
  /** What its requests have in common. */
  readonly id: string | Uint8Array;
  /** Whether the request may begin a conversation, so that an equal one earlier says nothing: it has no id of its own and
   * no reply in it. */
  readonly isFirst: boolean;
}

/** How long a conversation stays after its last request, in milliseconds: longer than vendors cache prompts by default. */
const stayMs = 3_600_000;

/** The most conversations that a process remembers; the least recently used are forgotten. */
const conversationsMax = 100_000;

/** How often a conversation that stays is told to other processes again, in milliseconds. */
const retellMs = stayMs / 2;

interface Stay extends Binding {
  readonly untilMs: number;
  /** When other processes are told again. */
  readonly retellAtMs: number;
}

/** The conversations of a process. */
export class Affinity {
  /** Called with each conversation that came or moved here, and again while it stays. Default: nothing. */
  onBind: ((key: string, route: RouteTarget, credential: CredentialTarget) => void) | undefined;
  readonly #stays = new Map<string, Stay>();
  readonly #clock: () => number;

  /** @param clock a monotonic clock in milliseconds */
  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /** Number of remembered conversations. */
  get size(): number {
    return this.#stays.size;
  }

  /** The key of a conversation. Equal conversations of other accounts, API keys or models have other keys. */
  keyOf(
    { id }: Conversation,
    owner: { readonly accountId: string; readonly keyId: string; readonly model: string },
  ): string {
    const scope = `${owner.accountId}\0${owner.keyId}\0${owner.model}\0`;
    const bytes = Buffer.concat([Buffer.from(scope), Buffer.from(id)]);
    return hash("sha1", bytes, "base64url");
  }

  /** Where a conversation is; `undefined`: not known. */
  find(key: string): Binding | undefined {
    const stay = this.#stays.get(key);
    if (stay === undefined) return undefined;
    if (stay.untilMs > this.#clock()) return stay;
    this.#stays.delete(key);
    return undefined;
  }

  /** Records that a request of the conversation was served there. */
  bind(key: string, route: RouteTarget, credential: CredentialTarget): void {
    const before = this.#stays.get(key);
    const isSame = before?.route === route && before.credential === credential;
    const nowMs = this.#clock();
    const isTold = isSame && nowMs < before.retellAtMs;
    this.#keep(key, {
      route,
      credential,
      retellAtMs: isTold ? before.retellAtMs : nowMs + retellMs,
    });
    if (!isTold) this.onBind?.(key, route, credential);
  }

  /** Takes over where another process served a request of the conversation. */
  adopt(key: string, route: RouteTarget, credential: CredentialTarget): void {
    this.#keep(key, { route, credential, retellAtMs: this.#clock() + retellMs });
  }

  #keep(key: string, stay: Omit<Stay, "untilMs">): void {
    // The newest are last.
    this.#stays.delete(key);
    this.#stays.set(key, { ...stay, untilMs: this.#clock() + stayMs });
    if (this.#stays.size <= conversationsMax) return;
    const [oldest] = this.#stays.keys();
    if (oldest !== undefined) this.#stays.delete(oldest);
  }
}

/** How long changes are collected, in milliseconds: shorter than a turn of a conversation. */
const collectMs = 50;

/** Conversations of one notice: PostgreSQL allows 8,000 bytes, and a key has 27. */
const keysMax = 150;

const channel = "conversation";

interface Notice {
  readonly process: string;
  readonly vendor: string;
  readonly model: string;
  readonly credential: string;
  readonly keys: readonly string[];
}

interface AffinityShareOptions {
  readonly pool: Pick<Pool, "query">;
  /** The database URL. It contains a password: never log it. */
  readonly url: DatabaseAddress;
  readonly affinity: Affinity;
  readonly targets: Targets;
  readonly log: Logger;
}

/** Shares conversations from {@link start} to {@link stop}. */
export class AffinityShare {
  readonly #options: AffinityShareOptions;
  readonly #listener: Listener;
  readonly #processId = newId();
  readonly #send: ReturnType<typeof singleFlight>;
  #changed = new Map<RouteTarget, Map<CredentialTarget, string[]>>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: AffinityShareOptions) {
    const { url, affinity, log } = options;
    this.#options = options;
    const onNotice = (payload: string): void => this.#take(payload);
    this.#listener = new Listener({ url, channel, onNotice });
    this.#send = singleFlight(
      () => this.#sendAll(),
      (error) => log.warn({ err: error }, "the places of conversations could not be shared"),
    );
    affinity.onBind = (key, route, credential) => this.#collect(key, route, credential);
  }

  async start(): Promise<void> {
    await this.#listener.start();
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#send.ended();
    await this.#send();
    await this.#listener.close();
  }

  #collect(key: string, route: RouteTarget, credential: CredentialTarget): void {
    let places = this.#changed.get(route);
    if (places === undefined) this.#changed.set(route, (places = new Map()));
    const keys = places.get(credential);
    if (keys === undefined) places.set(credential, [key]);
    else keys.push(key);
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.#send();
    }, collectMs).unref();
  }

  async #sendAll(): Promise<void> {
    const changed = this.#changed;
    this.#changed = new Map();
    const notices: string[] = [];
    for (const [{ vendor, model }, places] of changed) {
      for (const [{ credential }, keys] of places) {
        for (let from = 0; from < keys.length; from += keysMax) {
          const place = { process: this.#processId, vendor, model, credential };
          const part = keys.slice(from, from + keysMax);
          notices.push(JSON.stringify({ ...place, keys: part } satisfies Notice));
        }
      }
    }
    if (notices.length === 0) return;
    const sql = `select pg_notify('${channel}', payload) from unnest($1::text[]) payload`;
    await this.#options.pool.query(sql, [notices]);
  }

  #take(payload: string): void {
    const { affinity, targets } = this.#options;
    const { process, vendor, model, credential: name, keys } = JSON.parse(payload) as Notice;
    if (process === this.#processId) return;
    const route = targets.named({ vendor, model });
    const credential = route?.owner.credentials.find((each) => each.credential === name);
    if (route === undefined || credential === undefined) return;
    for (const key of keys) affinity.adopt(key, route, credential);
  }
}
