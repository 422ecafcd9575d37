import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCli } from "../../../src/cli/program.ts";
import { type TestDatabase, createTestDatabase } from "../../support/database.ts";

let database: TestDatabase;
const cwd = mkdtempSync(join(tmpdir(), "uas-cli-"));
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(async () => {
  await database.close();
  rmSync(cwd, { recursive: true, force: true });
});

/** Runs a command on the real services and a real database. */
async function uas(...line: string[]) {
  let out = "";
  let err = "";
  const code = await runCli(["node", "uas", ...line, "--json"], {
    env: { DATABASE_URL: database.url },
    cwd,
    version: "",
    out: (text) => void (out += text),
    err: (text) => void (err += text),
    servedKinds: async () => (await import("../../../src/provider/index.ts")).servedKinds,
    app: async () => ({
      ...(await import("../../../src/app/backend.ts")),
      ...(await import("../../../src/app/serve.ts")),
      ...(await import("../../../src/app/master-key.ts")),
      ...(await import("../../../src/app/vendor-probe.ts")),
      ...(await import("../../../src/app/database-check.ts")),
    }),
  });
  const json = JSON.parse(out === "" ? "null" : out) as Readonly<Record<string, string>>;
  return { code, err, json };
}

const unknownId = "01890000-0000-7000-8000-000000000001";

describe("the command line on the real services", () => {
  it("the command line on the real services goes from nothing to an account, money and keys, with the books right", async () => {
    const created = await uas("account", "create", "--name", "Acme", "--balance", "10.00");
    expect(created).toMatchObject({ code: 0, err: "" });
    const { accountId = "" } = created.json;

    const first = await uas("topup", accountId, "2.5", "--reference", "r1");
    expect(first.json).toMatchObject({ balance: "12.5", available: "12.5", replayed: false });
    const again = await uas("topup", accountId, "2.5", "--reference", "r1");
    expect(again.json).toMatchObject({ balance: "12.5", replayed: true });
    const other = await uas("topup", accountId, "3", "--reference", "r1");
    expect(other).toMatchObject({ code: 1, json: null });
    expect(other.err).toMatch(/^uas: \S[^\n]*\n$/);

    const key = await uas("key", "create", "--account", accountId, "--models", "demo-chat");
    expect(key.json["key"]).toMatch(/^uas_[A-Za-z0-9]{32}$/);
    const keyId = key.json["keyId"] ?? "";
    expect((await uas("key", "disable", keyId)).json).toEqual({ keyId, state: "disabled" });
    expect((await uas("key", "enable", keyId)).json).toEqual({ keyId, state: "enabled" });
    expect((await uas("key", "delete", keyId)).json).toEqual({ keyId, state: "deleted" });
    expect((await uas("key", "enable", keyId)).code).toBe(1);
    const keys = await uas("key", "list", "--account", accountId);
    expect(keys.json).toMatchObject([{ keyId, state: "deleted", models: ["demo-chat"] }]);
    expect(JSON.stringify(keys.json)).not.toContain(key.json["key"]);

    const shown = await uas("account", "show", accountId);
    expect(shown.json).toMatchObject({ name: "Acme", balance: "12.5", held: "0" });
    expect((await uas("account", "list")).json).toMatchObject([{ accountId }]);
    expect((await uas("calls", "list", "--account", accountId)).json).toEqual([]);
    expect((await uas("price", "show", "demo-chat")).json).toMatchObject({
      modelKey: "demo-chat",
      versions: [{ state: "current", price: { units: { input: "0.25", output: "2" } } }],
    });
    expect((await uas("ledger", "audit")).json).toMatchObject({
      ...{ ok: true, findings: [], complete: true },
      checkpoint: { number: 1 },
    });
  });

  it("warns when what it moves takes an account below its alert", async () => {
    const created = await uas("account", "create", "--name", "Low", "--balance", "10.00");
    const { accountId = "" } = created.json;
    await uas("account", "alert", accountId, "5.00");
    const line = ["account", "adjust", accountId, "-5.5", "--reason", "typo", "--reference", "r"];
    const adjusted = await uas(...line);
    expect(adjusted).toMatchObject({ code: 0, json: { balance: "4.5" } });
    const warning = `warning: account ${accountId} has fallen below its low-balance threshold\n`;
    expect(adjusted.err).toBe(warning);
    expect((await uas(...line)).err).toBe("");
  });

  it.each([
    ["account", "show", unknownId],
    ["account", "show", "x"],
    ["topup", unknownId, "1", "--reference", "r"],
    ["topup", unknownId, "0", "--reference", "r"],
    ["key", "create", "--account", unknownId],
    ["key", "disable", unknownId],
    ["key", "list", "--account", unknownId],
    ["calls", "list", "--account", unknownId],
    ["calls", "show", "nothing"],
    ["price", "show", "nothing"],
  ])(
    "the command line on the real services refuses what is not there in one line: %s %s %s",
    async (...line) => {
      const { code, err, json } = await uas(...line);
      expect({ code, json }).toEqual({ code: 1, json: null });
      expect(err).toMatch(/^uas: \S[^\n]*\n$/);
    },
  );
});
