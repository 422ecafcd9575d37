/**
 * Decides whether a request is accepted: the state of its account, the capacity of this process,
 * and the models that its key may use. It serves calls, tasks and native requests. The key is
 * verified earlier, in key/authenticate.ts; rate limits follow, in pipeline/limit.ts.
 */
import type { ModelConfig } from "../config/config.ts";
import type { Caller, KeyCaller } from "../core/caller.ts";
import { requireActive } from "../core/caller-rules.ts";
import type { Catalogue } from "./catalogue.ts";
import type { RunningCalls } from "./running-calls.ts";

/** Admits requests. */
export class Admission {
  readonly #catalogue: Catalogue;
  readonly #calls: RunningCalls;

  constructor({ catalogue, calls }: { catalogue: Catalogue; calls: RunningCalls }) {
    this.#catalogue = catalogue;
    this.#calls = calls;
  }

  /**
   * Counts a call as running, until {@link leave}. @throws GatewayError SERVICE_UNAVAILABLE at the
   * limit and while draining
   */
  enter(): void {
    this.#calls.enter();
  }

  /** Removes a call that has ended, settlement included. */
  leave(): void {
    this.#calls.leave();
  }

  /** Admits an account. @throws GatewayError ACCESS_DENIED if it is suspended */
  account(caller: KeyCaller): void {
    requireActive(caller);
  }

  /**
   * Finds the model that a caller named.
   *
   * @throws GatewayError MODEL_NOT_FOUND if there is none, ACCESS_DENIED if the key may not use it
   */
  model(caller: Caller, key: string): ModelConfig {
    return this.#catalogue.authorize(caller, key);
  }

  /**
   * Like {@link model}, for text generation. @throws GatewayError INVALID_REQUEST if the model
   * generates no text
   */
  textModel(caller: Caller, key: string): ModelConfig {
    return this.#catalogue.authorizeText(caller, key);
  }
}
