/**
 * Tells the other processes where conversations went, so that one stays with its credential whichever process gets its
 * next request. Notices only, and no table: a conversation whose notice is lost is chosen for again.
 */
import type { Pool } from "pg";
import type { Logger } from "pino";
import { singleFlight } from "../../core/async.ts";
import { newId } from "../../core/uuid.ts";
import { Listener } from "../../db/listener.ts";
import type { DatabaseAddress } from "../../db/servers.ts";
import type { Affinity } from "./affinity.ts";
import type { CredentialTarget, RouteTarget, Targets } from "./targets.ts";

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
    this.#listener = new Listener({ url, channel, applicationName: "uas-conversations", onNotice });
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
