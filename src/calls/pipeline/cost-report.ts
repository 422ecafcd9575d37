/**
 * Reports the charge of a call in its reply (R-TXT-12). The reported amount is the one that is
 * settled.
 */
import { formatUsd } from "../../core/money.ts";
import type { Chunk, CostWriter } from "./adapter.ts";
import { chargeAtEnd } from "./charge.ts";
import { clampToHold } from "./cover.ts";
import type { Delivery } from "./delivery.ts";
import type { Connection } from "./connection.ts";
import type { Opened } from "./open.ts";

/** Reports the charge of one call. */
export class CostReport<Out extends Chunk> {
  readonly #opened: Opened<Out>;
  readonly #writer: CostWriter<Out>;
  readonly #ended: { readonly connection: Connection; readonly delivery: Delivery };

  constructor(
    opened: Opened<Out>,
    writer: CostWriter<Out>,
    ended: { readonly connection: Connection; readonly delivery: Delivery },
  ) {
    this.#opened = opened;
    this.#writer = writer;
    this.#ended = ended;
  }

  /** A complete reply with its cost in it, and that cost. */
  async whole(body: Out): Promise<{ readonly body: Out; readonly cost: string }> {
    const cost = await this.#charge();
    return { body: this.#writer.whole(body, cost), cost };
  }

  /** The part of a stream that can go out now. @param isDone whether the stream is complete */
  async pass(out: Out, isDone: boolean): Promise<Out> {
    return this.#writer.write(out, isDone ? await this.#charge() : undefined);
  }

  /** The rest of a stream that ended well, with the cost. */
  async end(): Promise<Out> {
    return this.#writer.rest(await this.#charge());
  }

  /** Returns the rest of a failed stream, without a cost because it is still unknown. */
  abandon(): Out {
    return this.#writer.rest(undefined);
  }

  /** Decides the charge, once: nothing changes it later. */
  async #charge(): Promise<string> {
    const { connection, delivery } = this.#ended;
    const { call } = this.#opened;
    if (!delivery.isCostReported) {
      delivery.monitor?.end();
      // A reply that was stopped at its hold is charged already.
      if (delivery.monitor?.isUsedUp !== true) {
        const charging = chargeAtEnd(this.#opened, connection);
        if (charging !== undefined) await charging;
        // The ledger would charge less than reported if neither hold nor balance covers it.
        await clampToHold(this.#opened);
      }
      delivery.isCostReported = true;
    }
    return formatUsd(call.costNanos);
  }
}
