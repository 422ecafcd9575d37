/** Actions that need a code of their own (R-KEY-3, R-HOOK-6): who has the session alone cannot do them. */
import type { CodeAction } from "../../../gen/uas/account/v1/session_pb.ts";
import { callerKey } from "../../caller.ts";
import { type Calling, requireSession, requireVisit } from "../../visit.ts";
import { purposeOf } from "../code/purpose.ts";
import type { SignInRoom } from "../room.ts";
import { requireUser } from "../user/require-user.ts";

/** What a code is presented for. */
export interface StepUp {
  readonly action: CodeAction;
  /** The id that the action is about; empty where it has none. */
  readonly subjectId: string;
  readonly code: string;
}

/**
 * Uses up the code for an action of a session, and gives the session another token. The command line needs none: it is
 * not called by a browser.
 *
 * @throws GatewayError INVALID_REQUEST where the code is not right; ACCESS_DENIED
 */
export type RequireStepUp = (calling: Calling, stepUp: StepUp) => Promise<void>;

/** Makes it. */
export function createStepUp({
  users,
  codes,
  sessions,
}: Pick<SignInRoom, "users" | "codes" | "sessions">): RequireStepUp {
  return async (calling, { action, subjectId, code }) => {
    const caller = calling.values.get(callerKey);
    if (caller?.kind === "operator" && caller.session === undefined) return;
    const own = requireSession(calling);
    const user = await requireUser({ users }, own);
    const purpose = purposeOf(action);
    // Without a number no code was sent, and none is right.
    const phone = user.phone ?? "";
    const binding = { purpose, subject: subjectId, phone, binding: own.sessionId };
    await (await codes.check(binding, code.trim())).use();
    await sessions.rotate(requireVisit(calling), own.sessionId);
  };
}
