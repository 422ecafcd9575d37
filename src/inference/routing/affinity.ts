/** Keeps conversations with their route and credential, so that vendors' prompt caches are used. */
import { hash } from "node:crypto";
import type { Binding } from "./attempt-plan.ts";
import type { CredentialTarget, RouteTarget } from "./targets.ts";

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
