/** Closing and erasing an account: its personal data leaves every table, and the money stays. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code, createClient } from "@connectrpc/connect";
import { Client } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { AccountState } from "../../../gen/uas/account/v1/account_pb.ts";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { KeyState } from "../../../gen/uas/key/v1/key_pb.ts";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { newId } from "../../../src/core/uuid.ts";
import { type DemoGateway, startDemoGateway } from "../../docs/demo-gateway.ts";

const cwd = mkdtempSync(join(tmpdir(), "uas-erase-"));
/** Part of each personal datum. */
const planted = "planted";
const phone = "+4915112345678";
const ipAddress = "203.0.113.77";
let gateway: DemoGateway;
let sql: Client;
let accountId: string;

beforeAll(async () => {
  gateway = await startDemoGateway(cwd);
  accountId = gateway.env["ACCOUNT"] ?? "";
  sql = new Client({ connectionString: gateway.env["DATABASE_URL"] });
  await sql.connect();
});
afterAll(async () => {
  await sql?.end();
  // Fails if the ledger audit finds a broken rule.
  await gateway?.close();
  rmSync(cwd, { recursive: true, force: true });
});

async function send(path: string, body?: object): Promise<Response> {
  return fetch(`${gateway.publicUrl}${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: {
      authorization: `Bearer ${gateway.env["UAS_API_KEY"]}`,
      "content-type": "application/json",
      "x-request-id": `${planted}${path.replaceAll(/\W/g, "-")}`,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

/** The tables that contain one of the texts, as a text or as bytes. */
async function tablesWith(...texts: readonly string[]): Promise<string[]> {
  const patterns = texts.flatMap((text) => [`%${text}%`, `%${Buffer.from(text).toString("hex")}%`]);
  const { rows } = await sql.query<{ name: string }>(
    `select relname as name from pg_class where relkind in ('r', 'p') and not relispartition
       and relnamespace = 'public'::regnamespace`,
  );
  const found: string[] = [];
  for (const { name } of rows) {
    const text = `select from "${name}" as each where to_jsonb(each)::text ilike any($1) limit 1`;
    const { rowCount } = await sql.query(text, [patterns]);
    if ((rowCount ?? 0) > 0) found.push(name);
  }
  return found.toSorted();
}

/** Leaves personal data of the account wherever it can be. */
async function plant(): Promise<void> {
  const { transport } = gateway.app;
  const accounts = createClient(AccountService, transport);
  const alertUrl = "https://planted.example/alerts";
  await accounts.updateAccount({
    account: { accountId, name: `${planted} name`, alertUrl },
    updateMask: { paths: ["name", "alert_url"] },
  });
  const reason = `${planted} reason`;
  await accounts.suspendAccount({ accountId, reason });
  await accounts.resumeAccount({ accountId });
  const users = createClient(UserService, transport);
  const { user } = await users.createUser({ accountId, name: `${planted} user`, phone });
  await users.createSignInLink({ userId: user?.userId ?? "" });
  await sql.query(
    `insert into console_session (id, user_id, digest, method, expire_time, ip_address, user_agent)
       values ($1, $2, '\\x01', 1, now() + interval '1 hour', $3, $4)`,
    [newId(), user?.userId, ipAddress, `${planted} browser`],
  );
  await createClient(KeyService, transport).createKey({ accountId, name: `${planted} key` });
  const amount = { currencyCode: "USD", amountNanos: 1_000_000_000n };
  const booked = { accountId, amount, reason, reference: "goodwill" };
  await createClient(BillingService, transport).adjustBalance(booked);
  await plantCalls();
}

async function plantCalls(): Promise<void> {
  const response = { model: "demo/instant", input: `${planted} prompt`, store: true };
  expect((await send("/v1/responses", response)).status).toBe(200);
  const submitted = await send("/api/ai/tasks", {
    modelKey: "demo-image",
    imageParams: { prompt: `${planted} prompt` },
    callbackUrl: "https://planted.example/tasks",
  });
  const { taskId } = (await submitted.json()) as { taskId: string };
  for (let status: unknown = "progress"; status === "progress"; ) {
    const poll = await send(`/api/ai/tasks/${taskId}?wait=10`);
    ({ status } = (await poll.json()) as { status: unknown });
  }
  for (const path of ["-v1-responses", "-api-ai-tasks"]) await gateway.recorded(planted + path);
}

it("an erased account leaves no personal data in any table, keeps its money, and stays erased", async () => {
  await plant();
  const before = await tablesWith(planted, phone, ipAddress);
  expect(before).toEqual(
    expect.arrayContaining(["account", "api_key", "audit_entry", "booking", "call", "task"]),
  );
  const accounts = createClient(AccountService, gateway.app.transport);
  await expect(accounts.eraseAccount({ accountId })).rejects.toMatchObject({
    message: expect.stringContaining("close it first") as string,
  });

  const { account } = await accounts.closeAccount({ accountId });
  expect(account?.state).toBe(AccountState.CLOSED);
  const refused = await send("/v1/chat/completions", { model: "demo/instant", messages: [] });
  expect(refused.status).toBe(401);
  await gateway.recorded(`${planted}-v1-chat-completions`);
  const { keys } = await createClient(KeyService, gateway.app.transport).listKeys({ accountId });
  expect(new Set(keys.map(({ state }) => state))).toEqual(new Set([KeyState.DISABLED]));

  const billing = createClient(BillingService, gateway.app.transport);
  const money = async () => [
    (await billing.getBalance({ accountId })).balance?.balance?.amountNanos,
    (await billing.listLedgerEntries({ accountId })).entries.map(
      (each) => each.amount?.amountNanos,
    ),
  ];
  const kept = await money();
  const holdId = newId();
  await sql.query(
    `insert into open_hold (id, account_id, amount, node_id, expires_at)
       select $1, $2, 0, id, now() + interval '1 hour' from node limit 1`,
    [holdId, accountId],
  );
  await expect(accounts.eraseAccount({ accountId })).rejects.toMatchObject({
    message: expect.stringContaining("still has 1 running calls and 0 unfinished tasks") as string,
  });
  await sql.query("delete from open_hold where id = $1", [holdId]);
  for (let time = 0; time < 2; time++) {
    const erased = await accounts.eraseAccount({ accountId });
    expect(erased.account?.state).toBe(AccountState.ERASED);
    expect(await tablesWith(planted, phone, ipAddress)).toEqual([]);
    expect(await money()).toEqual(kept);
  }
  expect((await send("/v1/chat/completions", { model: "demo/instant" })).status).toBe(401);
  const { rows } = await sql.query("select from result_file where expire_time > now()");
  expect(rows).toEqual([]);
  await expect(accounts.resumeAccount({ accountId })).rejects.toMatchObject({
    code: Code.Aborted,
  });
  expect((await billing.auditLedger({})).findings).toEqual([]);
});
