/** A vendor's reply on its way to the caller, and one that came whole. */
import type { Usage } from "../../gen/uas/type/v1/usage_pb.ts";
import type { UnitUsage } from "../billing/price.ts";
import type { GatewayError } from "../errors.ts";
import type { Chunk, WholeReply } from "./door.ts";

/** What has come of a reply, and what goes to the caller: read as
 * `while (await reply.ready()) use(reply.take())`, then {@link rest}. */
export interface PassedReply<Out> {
  /** What the vendor reported so far. */
  readonly usage: Usage | undefined;
  /** Bytes of generated text so far. */
  readonly textBytes: number;
  /** What was made beside text so far. Default: nothing. */
  readonly units?: UnitUsage | undefined;
  /** Whether its end is out: nothing can be missing any more. */
  readonly isDone: boolean;
  /** Whether all of it has come from the vendor. */
  readonly isComplete: boolean;
  /** Whether the gateway ended it as one that came to its limit. */
  readonly isStopped: boolean;
  /** Why the gateway broke it off. */
  readonly failure: GatewayError | undefined;
  /** Its length; `undefined`: it is streamed. */
  readonly length: number | undefined;
  /** Resolves to whether there is something to {@link take}; false at the end. */
  ready(): Promise<boolean>;
  /** What has come for the client; empty where no event is complete yet. */
  take(): Out;
  /** What is left for the client once {@link ready} has said no; `undefined`: nothing. Throws where the reply
   * was cut. */
  rest(): Out | undefined;
  /** The event that ends a reply which failed; `undefined`: the failure itself tells the caller. */
  errorEvent(told: GatewayError): Out | undefined;
  /** Reads what is still to come, for nobody. */
  drain(): Promise<void>;
}

/** A reply that came whole. */
export class WholePassed<Out extends Chunk> implements PassedReply<Out> {
  readonly usage: Usage | undefined;
  readonly textBytes: number;
  readonly units: UnitUsage | undefined;
  readonly isComplete: boolean;
  readonly isStopped = false;
  readonly failure = undefined;
  readonly length: number;
  readonly #body: Out;
  #isDone = false;

  /** @param isComplete default true; a vendor's refusal is no reply */
  constructor({ body, usage, textBytes, units }: WholeReply<Out>, isComplete = true) {
    this.isComplete = isComplete;
    this.#body = body;
    this.usage = usage;
    this.textBytes = textBytes;
    this.units = units;
    this.length = body.length;
  }

  get isDone(): boolean {
    return this.#isDone;
  }

  ready(): Promise<boolean> {
    return Promise.resolve(!this.#isDone && this.length > 0);
  }

  take(): Out {
    this.#isDone = true;
    return this.#body;
  }

  rest(): undefined {}

  errorEvent(): undefined {}

  async drain(): Promise<void> {}
}
