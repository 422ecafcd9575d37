/** Who is signed in. */
import type { SessionRef } from "../../caller.ts";
import { notSignedIn } from "../../visit.ts";
import type { UserRow, Users } from "./store.ts";

/** The user of a session. @throws GatewayError UNAUTHENTICATED where there is none any more */
export async function requireUser(
  { users }: { readonly users: Users },
  { userId }: SessionRef,
): Promise<UserRow> {
  const user = await users.get(userId);
  if (user === undefined) throw notSignedIn();
  return user;
}
