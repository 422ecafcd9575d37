/** The connection of a call with vendors and client, from its first attempt to its settlement. */
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { GatewayError } from "../../core/errors.ts";
import { HttpFailure } from "../../http/failure.ts";
import type { OpenReply } from "../../routing/attempt.ts";
import type { Destination } from "../../routing/attempt-plan.ts";
import type { PlannedRoute } from "../../routing/planned-route.ts";
import type { Chunk } from "./adapter.ts";
import type { Admitted } from "./admit.ts";
import { DisconnectHandler } from "./disconnect.ts";

/** The state of a call's attempts, from the first one to the settlement. */
export class Connection {
  readonly client: DisconnectHandler;
  /** Request members that the style of the last attempt could not carry. */
  dropped: readonly string[] = [];
  /** The route of the last attempt; undefined if none was made. */
  asked: PlannedRoute | undefined;
  /**
   * The facts of a stream that was opened and not delivered yet. If its client disconnects now,
   * these decide the charge. Undefined if there is none.
   */
  unfinished: object | undefined;
  #open: OpenReply | undefined;
  #isSent = false;

  constructor({ call, context, deps }: Pick<Admitted<Chunk>, "call" | "context" | "deps">) {
    this.client = new DisconnectHandler({ call, client: context.signal, detached: deps.detached });
  }

  /** The route and credential that answered; undefined if none did. */
  get destination(): Destination | undefined {
    return this.#open?.destination;
  }

  /**
   * Whether a vendor received the whole request and did not refuse it. Such a vendor reads the
   * input and charges for it.
   */
  get isAccepted(): boolean {
    return this.#open === undefined ? this.#isSent : this.#open.refusal === undefined;
  }

  /** Records a vendor's answer. */
  answered(reply: OpenReply): void {
    this.#open = reply;
  }

  /** Records that the last answer is not used. */
  abandoned(): void {
    this.#open = undefined;
    this.unfinished = undefined;
  }

  /** Records the error of the last attempt. */
  failed(error: unknown): void {
    const failure = error instanceof GatewayError ? error.cause : error;
    this.#isSent = failure instanceof HttpFailure && failure.isSent;
  }

  /**
   * Releases the vendor's slot, and stops a vendor whose reply has not ended. @param usage what the
   * vendor reported; default: not known
   */
  close(usage?: Usage): void {
    this.client.end();
    if (this.#open === undefined) return;
    if (usage !== undefined) this.#open.usedTokens = usage.inputTokens + usage.outputTokens;
    this.#open.close();
  }
}
