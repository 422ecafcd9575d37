/** Tells a caller what its call is charged, in the reply itself (R-TXT-12). What was told is what is settled. */
import { formatUsd } from "../../core/money.ts";
import type { Chunk, CostWriter } from "./adapter.ts";
import { chargeAtEnd, type Delivery } from "./settle.ts";
import type { Connection, Opened } from "./open.ts";
import { clampToHold } from "./overrun.ts";

/** The charge of one call on its way to its caller. */
export class ToldCost<Out extends Chunk> {
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

  /** What of a stream can go out now. @param isDone whether this is all of it */
  async pass(out: Out, isDone: boolean): Promise<Out> {
    return this.#writer.write(out, isDone ? await this.#charge() : undefined);
  }

  /** What is still held back of a stream that has ended well. */
  async end(): Promise<Out> {
    return this.#writer.rest(await this.#charge());
  }

  /** What is still held back of a stream that has failed: its cost is not known yet. */
  abandon(): Out {
    return this.#writer.rest(undefined);
  }

  /** Decides the charge, once: nothing that comes later changes it. */
  async #charge(): Promise<string> {
    const { connection, delivery } = this.#ended;
    const { call } = this.#opened;
    if (!delivery.isCostTold) {
      delivery.monitor?.end();
      // What the stop of a reply has told is what is charged.
      if (delivery.monitor?.isUsedUp !== true) {
        await chargeAtEnd(this.#opened, connection);
        // The ledger would charge less than was told where neither hold nor balance covers it.
        await clampToHold(this.#opened);
      }
      delivery.isCostTold = true;
    }
    return formatUsd(call.costNanos);
  }
}
