/**
 * Alerts: each threshold of a period is reported once by any number of processes, as a signed
 * webhook and by e-mail.
 */
import { Pool } from "pg";
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { createAlertJobs } from "../../../src/alert/jobs.ts";
import { createMailer, type MailOutcome } from "../../../src/alert/mailer.ts";
import { createLedger } from "../../../src/billing/ledger/ledger-writer.ts";
import { newId } from "../../../src/core/uuid.ts";
import { callRow } from "../billing/calls/call-row.ts";
import { type Billing, holdWaitMs, openBilling, topUp } from "../billing/harness.ts";
import { openSmtpServer } from "./smtp-server.ts";

type SmtpServer = Awaited<ReturnType<typeof openSmtpServer>>;

let billing: Billing;
let smtp: SmtpServer;
let accountId: string;
const outcomes: MailOutcome["kind"][] = [];
beforeAll(async () => {
  [billing, smtp] = await Promise.all([openBilling(), openSmtpServer("uas", "p@ss/word")]);
});
afterAll(async () => {
  await billing.close();
  await smtp.close();
});
beforeEach(async () => {
  accountId = await billing.account(1_000_000_000n);
  smtp.mails.length = outcomes.length = 0;
  smtp.answers.clear();
  await billing.pool.query("delete from alert");
  await billing.pool.query(
    "insert into account (id, name, alert_url, alert_emails) values ($1, $2, $3, $4)",
    [
      accountId,
      "Acme\r\nBcc: all@example.com",
      "https://hooks.example.com/alerts",
      ["a@example.com", "b@example.com"],
    ],
  );
});

/** The jobs of one process, with separate connections. */
function process(hasMailer = true, url = smtp.url) {
  const pool = new Pool({ connectionString: billing.url, max: 2 });
  const mailer = hasMailer ? createMailer({ url, from: "UAS <no-reply@example.com>" }) : undefined;
  onTestFinished(async () => {
    mailer?.close();
    await pool.end();
  });
  return createAlertJobs({
    pool,
    mailer: () => mailer,
    warn() {},
    onEmail: (kind) => outcomes.push(kind),
  });
}

async function setBudget(amount: number): Promise<void> {
  const text = "select ledger_budget_set($1, $1, '{3}', array[$2::bigint], '{Asia/Shanghai}')";
  await billing.pool.query(text, [accountId, amount]);
}

async function spend(cost: bigint): Promise<void> {
  const id = newId();
  await billing.send({ accountId, holds: [{ id, amountNanos: cost }] });
  await billing.send({ accountId, settles: [[id, cost]] });
}

async function thresholds(): Promise<number[]> {
  const { rows } = await billing.pool.query<{ percent: number }>(
    "select (facts->>'threshold')::int as percent from alert where account_id = $1 and kind = 2 order by create_time, 1",
    [accountId],
  );
  return rows.map(({ percent }) => percent);
}

interface StoredEvent {
  readonly callback_id: string;
  readonly body: Record<string, unknown> & { readonly data: Record<string, unknown> };
}

async function events(): Promise<StoredEvent[]> {
  const { rows } = await billing.pool.query<{ callback_id: string; body: Buffer }>(
    "select e.callback_id, e.body from webhook_event e join webhook_delivery d on d.id = e.id " +
      "where e.account_id = $1 and d.kind = 2 and e.status = 5 order by e.id",
    [accountId],
  );
  return rows.map(({ callback_id, body }) => ({
    callback_id,
    body: JSON.parse(body.toString()) as StoredEvent["body"],
  }));
}

it("each of 50, 80 and 95 % is reported once, however calls come, over four processes", async () => {
  await setBudget(1_000);
  const ledgers = Array.from({ length: 4 }, () =>
    createLedger({ url: billing.url, connections: 1, holdWaitMs }),
  );
  onTestFinished(async () => {
    await Promise.all(ledgers.map((ledger) => ledger.close()));
  });
  await Promise.all(
    Array.from({ length: 200 }, async (_, index) => {
      const ledger = ledgers[index % 4];
      const id = newId();
      const verdict = await ledger?.hold({ id, accountId, amountNanos: 5n, keyId: "" });
      expect(verdict?.admitted).toBe(true);
      await ledger?.settle({ id, accountId, costNanos: 5n, record: callRow(id, accountId) });
    }),
  );
  // Two batches may begin in another order than the account's lock admits them.
  expect((await thresholds()).toSorted((a, b) => a - b)).toEqual([50, 80, 95]);
  const processes = Array.from({ length: 4 }, () => process());
  const handed = await Promise.all(processes.map((each) => each.handOver()));
  expect(handed.reduce((sum, count) => sum + count)).toBe(3);
  await Promise.all(processes.map((each) => each.sendEmails()));
  expect(await processes[0]?.handOver()).toBe(0);
  expect(await processes[0]?.sendEmails()).toBe(0);
  const reported = (await events()).map(({ body }) => Number(body.data["threshold_percent"]));
  expect(reported.toSorted((a, b) => a - b)).toEqual([50, 80, 95]);
  expect(smtp.mails.map(({ to }) => to.join(",")).toSorted()).toEqual([
    ...Array.from({ length: 3 }, () => "a@example.com"),
    ...Array.from({ length: 3 }, () => "b@example.com"),
  ]);
  expect(new Set(smtp.mails.map(({ headers }) => headers.get("message-id"))).size).toBe(3);
  expect(smtp.faults).toEqual([]);
});

it("one call that passes all thresholds reports all; the next period reports again; a new amount starts anew", async () => {
  await setBudget(100);
  await spend(96n);
  expect(await thresholds()).toEqual([50, 80, 95]);
  await spend(2n);
  expect(await thresholds()).toHaveLength(3);
  await billing.pool.query(
    "update budget set start_time = start_time - interval '40 days', end_time = now() where account_id = $1",
    [accountId],
  );
  await billing.countEarlier(accountId, 40);
  await spend(50n);
  expect(await thresholds()).toEqual([50, 80, 95, 50]);
  await setBudget(55);
  await spend(3n);
  expect(await thresholds()).toEqual([50, 80, 95, 50, 95]);
});

it("the webhook says what was spent of which budget, and the e-mail cannot be forged by a name", async () => {
  await setBudget(2_000_000_000);
  await topUp(billing.pool, accountId, 5_000_000_000n);
  await spend(1_000_000_000n);
  const sending = process();
  await sending.handOver();
  await sending.sendEmails();
  const [event] = await events();
  expect(event?.callback_id).toBe("budget.threshold");
  expect(event?.body).toMatchObject({
    type: "budget.threshold",
    data: {
      account_id: accountId,
      owner: "account",
      key_id: null,
      threshold_percent: 50,
      period: "month",
      budget: "2",
      spent: "1",
      time_zone: "Asia/Shanghai",
    },
  });
  const [mail] = smtp.mails;
  expect(mail?.from).toBe("no-reply@example.com");
  expect([...(mail?.headers.keys() ?? [])]).not.toContain("bcc");
  expect(mail?.headers.get("subject")).toContain("50 % of the budget of 2 USD per month is spent");
  expect(mail?.headers.get("auto-submitted")).toBe("auto-generated");
  expect(mail?.text).toContain("1 USD of the budget of 2 USD per month");
});

it("a balance below its threshold is reported once for each fall", async () => {
  await billing.pool.query("update balance set low_below = 900000000 where account_id = $1", [
    accountId,
  ]);
  await spend(50_000_000n);
  await spend(60_000_000n);
  await spend(60_000_000n);
  await topUp(billing.pool, accountId, 500_000_000n);
  await spend(600_000_000n);
  const sending = process(false);
  await sending.handOver();
  expect((await events()).map(({ body }) => [body["type"], body.data["balance"]])).toEqual([
    ["balance.low", "0.89"],
    ["balance.low", "0.73"],
  ]);
  expect(await sending.sendEmails()).toBe(0);
  expect(await billing.count("alert", "email_due is not null")).toBe(0);
});

it("a permanently refused recipient is not retried, a failing one is, and no recipient gets it twice", async () => {
  await setBudget(100);
  await spend(50n);
  smtp.answers.set("a@example.com", "550 5.1.1 no such user");
  smtp.answers.set("b@example.com", "451 4.3.0 try later");
  const sending = process();
  await sending.handOver();
  expect(await sending.sendEmails()).toBe(1);
  expect(outcomes).toEqual(["refused", "failed"]);
  expect(await sending.sendEmails()).toBe(0);
  const { rows } = await billing.pool.query<{ seconds: number }>(
    "update alert set email_due = now() where email_due > now() + interval '50 s' returning 60 as seconds",
  );
  expect(rows).toHaveLength(1);
  smtp.answers.clear();
  expect(await sending.sendEmails()).toBe(1);
  expect(smtp.mails.map(({ to }) => to)).toEqual([["b@example.com"]]);
  expect(await billing.count("alert", "email_due is not null")).toBe(0);
});

it("a mail server that refuses the credentials loses no e-mail", async () => {
  await setBudget(100);
  await spend(50n);
  const sending = process(true, smtp.url.replace("word", "wrong"));
  await sending.handOver();
  await sending.sendEmails();
  expect(outcomes).toEqual(["failed", "failed"]);
  expect(await billing.count("alert", "cardinality(email_to) = 2")).toBe(1);
});

it("a process whose clock is 400 days ahead deletes no alert that is young by the database's clock", async () => {
  const insert = `insert into alert (id, account_id, kind, facts, state, create_time)
    values ($1, $2, 1, '{}', 2, now() - $3::interval)`;
  const [young, old] = [newId(), newId()];
  await billing.pool.query(insert, [young, accountId, "29 days"]);
  await billing.pool.query(insert, [old, accountId, "31 days"]);
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 400 * 86_400_000 });
  onTestFinished(() => void vi.useRealTimers());
  await process(false).expire();
  const { rows } = await billing.pool.query("select id from alert order by id");
  expect(rows).toEqual([{ id: young }]);
});
