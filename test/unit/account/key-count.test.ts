/** The number of keys that an account's own users may have (R-MON-16). */
import { describe, expect, it } from "vitest";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { accountKeysMax } from "../../../src/core/limits.ts";
import { ErrorCode } from "../../../src/core/errors.ts";
import { createPhones, failureOf, signInWithCode } from "./browser.ts";
import { useConsole } from "./console.ts";

const site = useConsole();
const newPhone = createPhones();

/** Signs a user in whose account has this many keys. */
async function signIn(count: number, age: string, state: number) {
  const browser = site.browser();
  const { user } = await signInWithCode(browser, newPhone());
  const accountId = user?.accountId ?? "";
  await site.pool.query(
    `insert into api_key (id, account_id, name, digest, masked, state, create_time)
     select gen_random_uuid(), $1::uuid, '', convert_to(($1::uuid)::text || n, 'UTF8'), '', $3,
       now() - $4::interval
     from generate_series(1, $2) n`,
    [accountId, count, state, age],
  );
  return { accountId, keys: browser.client(KeyService) };
}

describe("keys of an account", () => {
  it("a user creates the last key of an account, and none above it, also at once", async () => {
    const { accountId, keys } = await signIn(accountKeysMax - 1, "2 days", 1);
    const made = await Promise.allSettled([1, 2, 3].map(() => keys.createKey({ accountId })));
    expect(made.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    const failure = await failureOf(keys.createKey({ accountId }));
    expect(failure.code).toBe(ErrorCode.INVALID_REQUEST);
    expect(failure.message).toContain("delete those that are not used");
  });

  it("keys that were deleted count for a day", async () => {
    const fresh = await signIn(accountKeysMax, "1 hour", 3);
    const failure = await failureOf(fresh.keys.createKey({ accountId: fresh.accountId }));
    expect(failure.message).toContain("try again tomorrow");
    const old = await signIn(accountKeysMax, "2 days", 3);
    expect((await old.keys.createKey({ accountId: old.accountId })).secret).toMatch(/^uas_/);
  });

  it("an operator creates more", async () => {
    const { accountId } = await signIn(accountKeysMax, "2 days", 1);
    expect((await site.gateway.keys.createKey({ accountId })).secret).toMatch(/^uas_/);
  });
});
