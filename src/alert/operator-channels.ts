/**
 * Sends messages to the operator's addresses. They are the operator's own, so they may be private.
 * Sending happens in the background, and never delays a call.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { AlertsConfig } from "../config/alerts.ts";
import { newId } from "../core/uuid.ts";
import type { Mailer } from "./mailer.ts";
import { bodyOf, type OperatorMessage, textOf, titleOf } from "./operator-alert.ts";

/** Options of {@link OperatorChannels}. */
export interface OperatorChannelsOptions {
  /** The addresses in force; undefined if there are none. */
  readonly addresses: () => AlertsConfig | undefined;
  /** Returns the mailer; undefined if no e-mail can be sent. */
  readonly mailer: (this: void) => Mailer | undefined;
  readonly warn: (message: string, fields: object) => void;
  /** Called with the outcome of each delivery. */
  readonly onDelivery: (outcome: "sent" | "failed") => void;
  /** Pauses before the second and later attempts. Default 2 s and 15 s. */
  readonly pausesMs?: readonly number[];
}

/** The delivery to one address. */
export interface OperatorDelivery {
  /** The e-mail address, or the host of a webhook: its path may be a secret. */
  readonly to: string;
  /** Why it failed; undefined if it was accepted. */
  readonly problem: string | undefined;
}

interface Channel {
  readonly to: string;
  /** @throws if it was not accepted */
  readonly send: (message: OperatorMessage) => Promise<void>;
}

const pausesMsDefault = [2_000, 15_000];

/** Timeout of a request to a webhook. */
const answerMs = 10_000;

/** Messages that may be under way at once. Further ones are only logged. */
const underWayMax = 100;

/** Sends to all addresses in force. */
export class OperatorChannels {
  readonly #options: OperatorChannelsOptions;
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(options: OperatorChannelsOptions) {
    this.#options = options;
  }

  /** Sends in the background, with a few attempts. */
  post(message: OperatorMessage): void {
    if (this.#underWay.size >= underWayMax) {
      this.#options.warn("an alert was not sent: too many are under way", { alert: message.name });
      return;
    }
    const sending = this.#sendAll(message, this.#options.pausesMs ?? pausesMsDefault);
    this.#underWay.add(sending);
    void sending.finally(() => this.#underWay.delete(sending));
  }

  /** Sends a message once to each address, for a test. */
  test(nowMs: number): Promise<readonly OperatorDelivery[]> {
    const text = "This is a test of `uas alerts test`. Nothing needs to be done.";
    const about = { name: "test", subject: "", severity: "warning", text } as const;
    return this.#sendAll({ ...about, event: "test", beginMs: nowMs, nowMs }, []);
  }

  /** Resolves when nothing is under way. */
  async ended(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  #sendAll(
    message: OperatorMessage,
    pausesMs: readonly number[],
  ): Promise<readonly OperatorDelivery[]> {
    return Promise.all(this.#channels().map((channel) => this.#send(channel, message, pausesMs)));
  }

  async #send(
    { to, send }: Channel,
    message: OperatorMessage,
    pausesMs: readonly number[],
  ): Promise<OperatorDelivery> {
    const { onDelivery, warn } = this.#options;
    for (let attempt = 0; ; attempt++) {
      try {
        await send(message);
        onDelivery("sent");
        return { to, problem: undefined };
      } catch (error) {
        const problem = problemOf(error);
        const pauseMs = pausesMs[attempt];
        if (pauseMs === undefined) {
          onDelivery("failed");
          warn("an alert could not be sent", { alert: message.name, to, reason: problem });
          return { to, problem };
        }
        await sleep(pauseMs, undefined, { ref: false });
      }
    }
  }

  #channels(): Channel[] {
    const { email = [], webhooks = [] } = this.#options.addresses() ?? {};
    const mailer = this.#options.mailer();
    return [
      ...email.map((to) => ({ to, send: (message: OperatorMessage) => mail(mailer, to, message) })),
      ...webhooks.map(({ url, format }) => ({
        to: new URL(url).host,
        send: (message: OperatorMessage) => request(url, bodyOf(message, format)),
      })),
    ];
  }
}

async function mail(
  mailer: Mailer | undefined,
  to: string,
  message: OperatorMessage,
): Promise<void> {
  if (mailer === undefined)
    throw new Error("there is no mail server: set smtp in the configuration");
  const content = { subject: titleOf(message), text: textOf(message) };
  const outcome = await mailer.send({ id: newId(), to, ...content });
  if (outcome.kind !== "sent") throw new Error(outcome.reason);
}

async function request(url: string, body: string): Promise<void> {
  const signal = AbortSignal.timeout(answerMs);
  const headers = { "content-type": "application/json" };
  const reply = await fetch(url, { method: "POST", headers, body, signal, redirect: "manual" });
  await reply.body?.cancel();
  if (!reply.ok) throw new Error(`it answered with status ${reply.status}`);
}

/** The reason in words. The message of `fetch` says nothing; its cause does. */
function problemOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message.slice(0, 300);
  const code = "code" in cause ? String(cause.code) : "";
  return cause.message.slice(0, 300) || code || error.message;
}
