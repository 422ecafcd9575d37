/**
 * The master key of a database: recorded at the first start, required at every other, changed on
 * purpose only.
 */
import { createClient } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { type Backend, openBackend } from "../../../src/app/backend.ts";
import { rotateMasterKey } from "../../../src/app/master-key.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { readSettings } from "../../../src/config/settings.ts";
import { servedKinds } from "../../../src/provider/index.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { makePlace, type Place, Process } from "./process.ts";

const [first, second, third] = [1, 2, 3].map((value) => Buffer.alloc(32, value)) as [
  Buffer,
  Buffer,
  Buffer,
];

let database: TestDatabase;
let place: Place;

beforeEach(async () => {
  database = await createTestDatabase();
  place = makePlace();
});
afterEach(async () => {
  await database.close();
  place.close();
});

function settingsOf(masterKey: Buffer) {
  const env = { DATABASE_URL: database.url, UAS_MASTER_KEY: masterKey.toString("base64") };
  return readSettings(env, place.folder);
}

/** Opens the services with a master key, runs the work and closes them. */
async function withBackend<Result>(
  masterKey: Buffer,
  work: (backend: Backend) => Promise<Result>,
): Promise<Result> {
  const kinds = servedKinds;
  const config = loadConfig({ env: {}, cwd: place.folder, kinds, unresolved: "placeholder" });
  const backend = await openBackend({ settings: settingsOf(masterKey), config });
  try {
    return await work(backend);
  } finally {
    await backend.close();
  }
}

/**
 * An account with an API key, a webhook secret and stored reasoning, made with the first master
 * key.
 */
async function prepare(): Promise<{ accountId: string; secret: string }> {
  return withBackend(first, async ({ transport, webhookSecrets }) => {
    const { account } = await createClient(AccountService, transport).createAccount({ name: "a" });
    const accountId = account?.accountId ?? "";
    await createClient(KeyService, transport).createKey({ accountId });
    return { accountId, secret: (await webhookSecrets.get(accountId)).current };
  });
}

const secretOf = (masterKey: Buffer, accountId: string): Promise<string> =>
  withBackend(masterKey, async ({ webhookSecrets }) => {
    const { current } = await webhookSecrets.get(accountId);
    return current;
  });

describe("the master key of a database (R-MON-14)", () => {
  it("a gateway with another master key does not start, and its one line names the command", async () => {
    await prepare();
    const process = new Process(place, {
      DATABASE_URL: database.url,
      UAS_MASTER_KEY: second.toString("base64"),
    });
    const { code, err, out } = await process.ended;
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(
      /^uas: The secrets of this database are encrypted with another master key[^\n]*uas master-key rotate[^\n]*\n$/,
    );
  });

  it("a command with another master key is refused before it creates a secret", async () => {
    const { accountId } = await prepare();
    await expect(secretOf(second, accountId)).rejects.toThrow(
      "The secrets of this database are encrypted with another master key",
    );
  });

  it("a deliberate change keeps secrets, and ends the former key", async () => {
    const { accountId, secret } = await prepare();
    const rotated = await rotateMasterKey({ settings: settingsOf(second), previous: first });
    expect(rotated).toMatchObject({ dataKeys: 1, webhookSecrets: 1 });
    expect(await secretOf(second, accountId)).toBe(secret);
    await expect(secretOf(first, accountId)).rejects.toThrow(
      "The secrets of this database are encrypted with another master key",
    );
  });

  it("a change is refused while a gateway runs", async () => {
    const { accountId, secret } = await prepare();
    await withBackend(first, ({ database: { pool } }) =>
      pool.query("insert into node (id, name) values (gen_random_uuid(), 'host-1')"),
    );
    const rotating = rotateMasterKey({ settings: settingsOf(second), previous: first });
    await expect(rotating).rejects.toThrow("A gateway is running on this database (host-1)");
    expect(await secretOf(first, accountId)).toBe(secret);
  });

  it("a wrong former key changes nothing", async () => {
    const { accountId, secret } = await prepare();
    const rotating = rotateMasterKey({ settings: settingsOf(second), previous: third });
    await expect(rotating).rejects.toThrow(
      "The secrets of this database are not encrypted with the given previous key",
    );
    expect(await secretOf(first, accountId)).toBe(secret);
  });

  it("a lost key can be replaced; accounts then have new webhook secrets", async () => {
    const { accountId, secret } = await prepare();
    const rotated = await rotateMasterKey({ settings: settingsOf(second), previous: undefined });
    expect(rotated).toMatchObject({ dataKeys: 1, webhookSecrets: 1 });
    const fresh = await secretOf(second, accountId);
    expect(fresh).toMatch(/^whsec_/);
    expect(fresh).not.toBe(secret);
  });
});
