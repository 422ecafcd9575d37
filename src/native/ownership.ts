/** Whether what a request is about is the caller's: asked before the vendor is (R-VND-3). */
import { ErrorCode, GatewayError } from "../errors.ts";
import type { NativeAsk, NativeContext } from "./context.ts";
import { ownsObjects } from "./store.ts";

/** What is said of an object that there is not, and of one of somebody else: always the same. */
export function noSuchObject(): GatewayError {
  return new GatewayError(
    ErrorCode.NOT_FOUND,
    "There is no such object: ids are found by the account that made them, through this gateway",
  );
}

/** @throws GatewayError NOT_FOUND */
export async function checkOwned(
  { at, caller }: Pick<NativeAsk, "at" | "caller">,
  { pool }: Pick<NativeContext, "pool">,
  names: readonly string[],
): Promise<void> {
  const owner = { vendor: at.config.name, accountId: caller.accountId };
  if (!(await ownsObjects(pool, owner, names))) throw noSuchObject();
}

/** The names of the objects that a request refers to. */
export function referencesOf({
  at,
  request,
}: Pick<NativeAsk, "at" | "request">): readonly string[] {
  return at.api.references?.(request) ?? [];
}

/** What a request refers to must be the caller's. @throws GatewayError NOT_FOUND */
export async function checkReferences(
  ask: NativeAsk,
  context: Pick<NativeContext, "pool">,
): Promise<void> {
  const names = referencesOf(ask);
  if (names.length > 0) await checkOwned(ask, context, names);
}
