/** Reads a request as far as a call needs it, before anything is held. */
import { requireActive } from "../caller.ts";
import type { ModelConfig } from "../config/config.ts";
import { stateWaitMs } from "../config/limits.ts";
import type { Call } from "./call.ts";
import type { AskedText, Door, PlannedRoute, PreparedCall } from "./door.ts";
import { incapable } from "./failures.ts";
import type { ExchangeContext, ExchangeOptions } from "./run-options.ts";
import { within } from "./within.ts";

/** Who asks for what. */
export interface CallToRead {
  /** Told what is known, however far the reading comes. */
  readonly call: Call;
  readonly door: DoorToRead;
  readonly context: ExchangeContext;
}

/** What of a door is read. */
type DoorToRead = Pick<Door<unknown>, "dialect" | "operation" | "read" | "recall" | "prepare"> &
  Pick<Door<unknown>, "takesAnyModel" | "plan" | "named">;

/** What was read. */
export interface ReadCall {
  readonly text: AskedText;
  readonly model: ModelConfig;
  readonly routes: readonly PlannedRoute[];
  /** The request for the first route: what is wrong with it must be known before money is held. */
  readonly first: PreparedCall | undefined;
}

/**
 * Reads the request as far as needed, finds the model, and puts what the request refers to in its place; of a
 * suspended account it reads nothing.
 *
 * @throws GatewayError
 */
export async function readCall(
  { call, door, context: { caller } }: CallToRead,
  { catalogue, upstream }: Pick<ExchangeOptions, "catalogue" | "upstream">,
): Promise<ReadCall> {
  requireActive(caller);
  let text = readText(call, door);
  call.stream = text.stream;
  call.model = text.model;
  const model = catalogue[door.takesAnyModel ? "authorize" : "authorizeText"](caller, text.model);
  let routes = door.plan?.(model) ?? upstream.plan(model, door.dialect, door.operation);
  const recalled = door.recall?.(routes);
  if (recalled !== undefined) ({ routes, text } = await within(stateWaitMs, recalled));
  const [first] = routes;
  if (first === undefined) throw incapable(model.key);
  const prepared = first.dialect === undefined ? undefined : door.prepare(model, first);
  return { text, model, routes, first: prepared };
}

/** The request. Where it is refused, its record still says which model it names. */
function readText(call: Call, door: DoorToRead): AskedText {
  try {
    return door.read();
  } catch (error) {
    call.model = door.named?.() ?? "";
    throw error;
  }
}
