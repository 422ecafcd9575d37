import type { ReasoningCarry } from "./reasoning-carry.ts";
import type { ResponseStore } from "./response-store.ts";

/** What is kept between calls. */
export interface CallState {
  readonly responses: ResponseStore;
  readonly reasoning: ReasoningCarry;
}
