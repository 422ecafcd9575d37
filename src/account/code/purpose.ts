/** What codes are for, as it is stored: numbers never change. */
import type { CodeAction } from "../../../gen/uas/account/v1/session_pb.ts";

/** Purposes that are no actions. */
export const CodePurpose = { SIGN_IN: 1, SET_PHONE: 2 } as const;

/** Where the purposes of actions begin. */
const firstAction = 10;

/** The purpose of an action. */
export function purposeOf(action: CodeAction): number {
  return firstAction + action;
}
