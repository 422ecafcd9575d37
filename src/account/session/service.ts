/** The RPCs of sessions. */
import type { ServiceImpl } from "@connectrpc/connect";
import type { SessionService } from "../../../gen/uas/account/v1/session_service_pb.ts";
import type { SignInRoom } from "../room.ts";
import { createActionCodeRpc } from "./action-code.ts";
import { createSessionRpcs } from "./rpcs.ts";
import { createSignInRpcs } from "./sign-in.ts";

/** Makes the implementation of `uas.account.v1.SessionService`. */
export function createSessionService(room: SignInRoom): ServiceImpl<typeof SessionService> {
  return { ...createSignInRpcs(room), ...createSessionRpcs(room), ...createActionCodeRpc(room) };
}
