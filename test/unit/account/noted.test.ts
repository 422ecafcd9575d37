/** Operators' changes of users, sessions and keys are recorded with the operator's name. */
import { createClient } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { OperatorService } from "../../../gen/uas/operator/v1/operator_service_pb.ts";
import { createPhones, signInWithCode } from "./browser.ts";
import { useConsole } from "./console.ts";

const site = useConsole();
const newPhone = createPhones();

it("R-CON-1: users, links, sessions and keys, by the user who is signed in", async () => {
  const operator = site.browser();
  const { user: actor } = await site.signInWithLink(operator);
  const member = site.browser();
  const phone = newPhone();
  const { user, session } = await signInWithCode(member, phone);
  const accountId = user?.accountId ?? "";
  // Members' changes of their own account are not recorded.
  const own = await member.client(KeyService).createKey({ accountId, name: "own" });
  const keyId = own.key?.keyId ?? "";

  const keys = operator.client(KeyService);
  const { key, secret } = await keys.createKey({ accountId, name: "by the operator" });
  await keys.disableKey({ keyId });
  await operator.session.revokeSession({ sessionId: session?.sessionId ?? "" });
  const { token } = await operator.users.createSignInLink({ userId: user?.userId ?? "" });
  const local = createClient(UserService, site.gateway.app.transport);
  const colleague = await local.createUser({ accountId, phone: newPhone() });
  await operator.users.deleteUser({ userId: colleague.user?.userId ?? "" });

  const log = operator.client(OperatorService);
  const { entries } = await log.listAuditEntries({});
  const told = entries.map(({ action, subject, actor: who }) => ({ action, subject, who }));
  const who = `user ${actor?.userId}`;
  const colleagueId = colleague.user?.userId ?? "";
  expect(told.slice(0, 6)).toEqual([
    { action: "user.delete", subject: colleagueId, who },
    { action: "user.create", subject: colleagueId, who: expect.not.stringContaining("user ") },
    { action: "user.link", subject: user?.userId, who },
    { action: "session.revoke", subject: session?.sessionId, who },
    { action: "key.disable", subject: keyId, who },
    { action: "key.create", subject: key?.keyId, who },
  ]);
  const disabled = entries[4];
  expect([disabled?.before, disabled?.after]).toEqual([
    { state: "enabled" },
    { state: "disabled" },
  ]);
  const text = JSON.stringify(entries.map(({ before, after }) => [before, after]));
  for (const hidden of [secret, token, phone, phone.slice(3)]) expect(text).not.toContain(hidden);
});
