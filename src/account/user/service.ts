import type { ServiceImpl } from "@connectrpc/connect";
import type { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import type { RequireStepUp } from "../../core/browser-session.ts";
import type { SignInRoom } from "../room.ts";
import { createUserManagement } from "./operator-rpcs.ts";
import { createOwnUserRpcs } from "./own-rpcs.ts";
import { createTotpRpcs } from "./totp-rpcs.ts";

/** Options of {@link createUserService} besides the room. */
export interface UserServiceOptions {
  readonly room: SignInRoom;
  readonly requireStepUp: RequireStepUp;
  readonly accountExists: (accountId: string) => Promise<boolean>;
}

/** Implements `uas.account.v1.UserService`. */
export function createUserService(options: UserServiceOptions): ServiceImpl<typeof UserService> {
  const { room, requireStepUp, accountExists } = options;
  return {
    ...createUserManagement(room, accountExists),
    ...createOwnUserRpcs(room, requireStepUp),
    ...createTotpRpcs(room),
  };
}
