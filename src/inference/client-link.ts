/** What becomes of a vendor's work when the client leaves (R-TXT-9). */
import { CallEnding } from "../../gen/uas/billing/v1/billing_pb.ts";
import { GatewayStopping } from "../caller.ts";
import type { Call } from "./call.ts";
import type { Drains } from "./drains.ts";

/** What a {@link ClientLink} needs. */
export interface ClientLinkOptions {
  /** Aborted when the client leaves or the gateway stops. */
  readonly client: AbortSignal;
  readonly drains: Drains;
  readonly call: Call;
}

/** Between a client and a vendor that charges for its whole reply, whether anybody reads it or not: where the
 * client leaves, the reply is read on to learn what it costs. */
export class ClientLink {
  readonly #options: ClientLinkOptions;
  readonly #vendor = new AbortController();
  #isLeft = false;

  constructor(options: ClientLinkOptions) {
    this.#options = options;
    if (options.client.aborted) this.#onAbort();
    else options.client.addEventListener("abort", this.#onAbort);
  }

  /** Aborted when the vendor must stop. */
  get signal(): AbortSignal {
    return this.#vendor.signal;
  }

  /** Whether the client has left and the vendor goes on. */
  get isLeft(): boolean {
    return this.#isLeft;
  }

  /** The vendor's reply has ended. */
  end(): void {
    this.#options.client.removeEventListener("abort", this.#onAbort);
    this.#options.drains.end(this.#vendor);
  }

  readonly #onAbort = (): void => {
    const { client, drains, call } = this.#options;
    const isStop = client.reason instanceof GatewayStopping;
    if (isStop || !drains.begin(this.#vendor)) {
      this.#vendor.abort(client.reason);
      return;
    }
    this.#isLeft = true;
    if (call.status === 0) call.status = 499;
    call.end(CallEnding.CLIENT_GONE);
  };
}
