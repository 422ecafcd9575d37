/**
 * Sends spans to a collector in batches, one at a time. Calls never wait for it: spans beyond the
 * queue, and those of a failed batch, are lost and counted.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { Agent, request } from "undici";
import { withTimeout } from "../../core/async.ts";
import type { OtlpSettings } from "./otlp-settings.ts";
import { type EncodedSpan, SpanWriter } from "./span-writer.ts";

/** Options of {@link BatchSender}. */
interface BatchSenderOptions {
  readonly settings: OtlpSettings;
  /** @param reason `queue_full`, or `export`: the collector refused them or was unreachable */
  readonly onDrop: (count: number, reason: string) => void;
  /** Called once when batches begin to fail. */
  readonly warn: (message: string, fields: object) => void;
}

/** Statuses after which the specification allows a retry. */
const retriedStatuses: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** Pauses before retries, within the time limit of a batch. */
const pausesMs = [250, 1_000, 2_500];

/** Maximum time for the last batches when a process stops. */
const closeMs = 2_000;

const zip = promisify(gzip);

/** Collects spans and sends them. */
export class BatchSender {
  readonly #options: BatchSenderOptions;
  readonly #agent: Agent;
  #pending: SpanWriter;
  /** The writer of the batch before, while no batch is sent. */
  #spare: SpanWriter;
  #sending: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isFailing = false;

  constructor(options: BatchSenderOptions) {
    this.#options = options;
    const newWriter = (): SpanWriter => new SpanWriter(options.settings.resource, "uas-gateway");
    this.#pending = newWriter();
    this.#spare = newWriter();
    this.#agent = new Agent({ connections: 1, connect: { ...options.settings.tls } });
  }

  /** Adds a span that ended at `endMs`. @param failure see {@link SpanWriter.write} */
  add(span: EncodedSpan, endMs: number, failure: string | undefined): void {
    const { batchSpans, queueSpans, delayMs } = this.#options.settings;
    if (this.#pending.count >= queueSpans) return this.#options.onDrop(1, "queue_full");
    this.#pending.write(span, endMs, failure);
    if (this.#sending !== undefined) return;
    if (this.#pending.count >= batchSpans) this.#send();
    else this.#timer ??= setTimeout(() => this.#send(), delayMs).unref();
  }

  /** Sends what is left, within a time limit. Never rejects. */
  async close(): Promise<void> {
    const rest = async (): Promise<void> => {
      await this.#sending;
      if (this.#pending.count > 0) this.#send();
      await this.#sending;
    };
    await withTimeout(closeMs, rest()).catch(() => {});
    await this.#agent.destroy();
  }

  #send(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const batch = this.#pending;
    this.#pending = this.#spare;
    this.#sending = this.#deliver(batch).finally(() => {
      this.#sending = undefined;
      batch.clear();
      this.#spare = batch;
      if (this.#pending.count >= this.#options.settings.batchSpans) this.#send();
      else if (this.#pending.count > 0) {
        this.#timer ??= setTimeout(() => this.#send(), this.#options.settings.delayMs).unref();
      }
    });
  }

  /** Delivers a batch. Never rejects. */
  async #deliver(batch: SpanWriter): Promise<void> {
    const { settings, onDrop, warn } = this.#options;
    try {
      const plain = batch.request;
      const body = settings.isCompressed ? await zip(plain) : plain;
      await this.#post(body, AbortSignal.timeout(settings.timeoutMs));
      this.#isFailing = false;
    } catch (error) {
      onDrop(batch.count, "export");
      if (this.#isFailing) return;
      this.#isFailing = true;
      warn("traces could not be sent: check OTEL_EXPORTER_OTLP_ENDPOINT and its headers", {
        err: error,
      });
    }
  }

  /** @throws if the collector does not accept the batch within its time */
  async #post(body: Buffer, signal: AbortSignal): Promise<void> {
    const { url, headers, isCompressed } = this.#options.settings;
    const type = { "content-type": "application/x-protobuf" };
    const coded = isCompressed && { "content-encoding": "gzip" };
    const sent = {
      method: "POST",
      headers: { ...headers, ...type, ...coded },
      body,
      signal,
    } as const;
    for (const pauseMs of [...pausesMs, undefined]) {
      const { statusCode, body: reply } = await request(url, { ...sent, dispatcher: this.#agent });
      await reply.dump();
      if (statusCode < 300) return;
      if (pauseMs === undefined || !retriedStatuses.has(statusCode)) {
        throw new Error(`the collector answered ${statusCode}`);
      }
      await sleep(pauseMs, undefined, { signal, ref: false });
    }
  }
}
