/** `deploy/backup/rehearse.sh` beside a gateway that serves, with Debian's `pg_dump`. */
import { type ExecFileException, execFile, execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { globSync, lstatSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { makePlace, type Place, Process } from "../../behaviour/lifecycle/process.ts";
import { createEmptyDatabase, type TestDatabase } from "../../support/database.ts";
import { withDatabase } from "../../support/test-server.ts";

const root = join(import.meta.dirname, "../../..");
const program = join(root, "uas");

const config = `version: 1
vendors: { demo: { kind: demo } }
models:
  chat: { type: TEXT, routes: [{ vendor: demo, model: chat }], max_output_tokens: 1024, price: { input: "0.25", output: "2.00" } }
`;

/** Whether pg_dump is at least as new as the server, as it requires. */
function canDump(): boolean {
  const { stdout, error } = spawnSync("pg_dump", ["--version"], { encoding: "utf8" });
  if (error !== undefined) return false;
  const dump = Number(/ (\d+)/.exec(stdout)?.[1]);
  const { adminUrl } = inject("server");
  const shown = spawnSync("psql", ["-XAtc", "show server_version_num", adminUrl], {
    encoding: "utf8",
  });
  return dump >= Math.floor(Number(shown.stdout) / 10_000);
}

describe.skipIf(!canDump())("a rehearsed restore", () => {
  let place: Place;
  let database: TestDatabase;
  let client: Client;
  let gateway: Process;
  let env: Readonly<Record<string, string>>;
  let accountId: string;

  beforeAll(async () => {
    place = makePlace({ "uas.yaml": config });
    database = await createEmptyDatabase();
    env = {
      DATABASE_URL: database.url,
      UAS_MASTER_KEY: Buffer.alloc(32, 5).toString("base64"),
      UAS_DATA_DIR: join(place.folder, "data"),
    };
    gateway = new Process(place, env, [program]);
    await gateway.listening();
    client = new Client({ connectionString: database.url });
    await client.connect();
    accountId = String(
      JSON.parse(uas("account", "create", "--name", "A", "--balance", "1", "--json")).accountId,
    );
  });
  afterAll(async () => {
    await gateway.kill();
    await client.end();
    await database.close();
    place.close();
  });

  const options = (more: Readonly<Record<string, string>> = {}) => ({
    cwd: place.folder,
    env: { PATH: process.env["PATH"], ...env, ...more },
    encoding: "utf8" as const,
  });
  const uas = (...args: string[]): string => execFileSync(program, args, options());

  /** Runs the script. */
  async function rehearse(
    more: Readonly<Record<string, string>> = {},
    ...args: string[]
  ): Promise<{ code: number; out: string; err: string }> {
    const script = join(root, "deploy/backup/rehearse.sh");
    return promisify(execFile)(script, args, options(more)).then(
      ({ stdout, stderr }) => ({ code: 0, out: stdout, err: stderr }),
      ({ code, stdout, stderr }: ExecFileException & { stdout: string; stderr: string }) => ({
        code: Number(code),
        out: stdout,
        err: stderr,
      }),
    );
  }

  const checkpoints = async (): Promise<string[]> => {
    const { rows } = await client.query<{ noted: string }>(
      "select n || ':' || hash as noted from ledger_checkpoint order by n",
    );
    return rows.map(({ noted }) => noted);
  };
  const copies = async (): Promise<string[]> => {
    const { rows } = await client.query<{ datname: string }>(
      "select datname from pg_database where datname like 'uas_rehearsal%'",
    );
    return rows.map(({ datname }) => datname);
  };

  test("audits a copy while a call runs, changes nothing in the database, and removes the copy", async () => {
    uas("ledger", "audit");
    const before = await checkpoints();
    const { key } = JSON.parse(uas("key", "create", "--account", accountId, "--json")) as {
      key: string;
    };
    const { url } = await gateway.listening();
    const call = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: "chat",
        stream: true,
        messages: [{ role: "user", content: "Hello" }],
      }),
    });
    const { code, out, err } = await rehearse();
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toContain("1 accounts, 1.000000000 USD, 1 open holds");
    expect(out).toContain(`${before.at(-1)} is in the copy`);
    expect(out).toMatch(/^ok +this backup can be restored$/m);
    expect(await checkpoints()).toEqual(before);
    expect(await copies()).toEqual([]);
    expect(await call.text()).toContain("[DONE]");
  });

  test("fails for a backup that lacks bookings, and for another master key", async () => {
    const file = join(place.folder, "old.dump");
    execFileSync("pg_dump", ["--format=custom", `--file=${file}`, database.url]);
    uas("topup", accountId, "2.00", "--reference", "R1");
    uas("ledger", "audit");
    const EXPECT = (await checkpoints()).at(-1) ?? "";
    const old = await rehearse({ EXPECT }, file);
    expect(old).toMatchObject({ code: 1, out: expect.stringContaining("I13") });
    const key = await rehearse({ UAS_MASTER_KEY: Buffer.alloc(32, 6).toString("base64") });
    expect(key).toMatchObject({ code: 1, err: expect.stringContaining("another master key") });
    expect(await copies()).toEqual([]);
  });

  test("an audit of a copy with the data folder of the live gateway changes neither folder nor proof", async () => {
    const file = join(place.folder, "old.dump");
    const kept = await rehearse({ KEEP: "1" }, file);
    expect(kept.code).toBe(0);
    const [name = ""] = await copies();
    try {
      const before = { files: filesOf(env["UAS_DATA_DIR"] ?? ""), chain: await checkpoints() };
      const copy = { DATABASE_URL: withDatabase(database.url, name) };
      const audited = execFileSync(program, ["ledger", "audit"], options(copy));
      expect(audited).toContain("ok: the ledger is consistent");
      // The copy lacks the top-up: it was audited, not the live database.
      expect(audited).toMatch(/balances of 0\.\d+ USD/);
      expect({ files: filesOf(env["UAS_DATA_DIR"] ?? ""), chain: await checkpoints() }).toEqual(
        before,
      );
      expect(uas("ledger", "audit", "--full", "--expect", before.chain.at(-1) ?? "")).toContain(
        "ok:",
      );
    } finally {
      await client.query(`drop database ${name}`);
    }
  });
});

/** The files of a folder, each with a hash of its content. */
function filesOf(folder: string): string[] {
  const names = globSync("**", { cwd: folder }).toSorted();
  return names.map((name) => {
    const path = join(folder, name);
    if (!lstatSync(path).isFile()) return name;
    return `${name} ${createHash("sha256").update(readFileSync(path)).digest("hex")}`;
  });
}
