/** What people are called in lists. */
import type { User } from "../../../gen/uas/account/v1/user_pb.ts";

/** What to call a person: the name, else what they sign in with. */
export function userName({ name, email, maskedPhone, userId }: User): string {
  return name || email || maskedPhone || userId.slice(-4);
}
