/** Alerts of operators: who sends them, when, and what arrives. */
import { neverMs } from "../../../src/alert/module.ts";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Pool } from "pg";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import type { Condition, OperatorMessage } from "../../../src/alert/operator-alert.ts";
import { OperatorChannels } from "../../../src/alert/operator-channels.ts";
import { createOperatorAlertJobs } from "../../../src/alert/operator-jobs.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  pool = new Pool({ connectionString: database.url, max: 4 });
});
beforeEach(() => pool.query("delete from operator_alert"));
afterAll(async () => {
  await pool.end();
  await database.close();
});

const refused: Condition = {
  name: "credential_refused",
  subject: "openai",
  severity: "critical",
  text: "The vendor openai refuses the credential.",
};

/** A process that notices what the test says. */
function createProcess(sent: OperatorMessage[], repeatMs = 3_600_000) {
  const state = { conditions: [refused] as Condition[], outageMs: undefined as number | undefined };
  const jobs = createOperatorAlertJobs({
    pool,
    conditions: async () => state.conditions,
    outageMs: () => state.outageMs,
    send: (message) => void sent.push(message),
    repeatMs: () => repeatMs,
    warn: () => {},
  });
  return { state, look: () => jobs.look() };
}

const age = (column: string) =>
  pool.query(`update operator_alert set ${column} = ${column} - interval '2 h'`);

test("without addresses to send to, what begins is stored all the same, and repeated never", async () => {
  const sent: OperatorMessage[] = [];
  const { state, look } = createProcess(sent, neverMs);
  await look();
  await age("sent_time");
  await look();
  state.conditions = [];
  await pool.query("update operator_alert set seen_time = seen_time - interval '1 h'");
  await look();
  expect(sent.map(({ event }) => event)).toEqual(["begun", "ended"]);
});

test("of several processes one sends: once when it begins, in intervals, and once when it ends", async () => {
  const sent: OperatorMessage[] = [];
  const all = Array.from({ length: 3 }, () => createProcess(sent));
  const look = () => Promise.all(all.map((each) => each.look()));
  const events = () => sent.splice(0).map(({ event, subject }) => [event, subject]);
  await look();
  await look();
  expect(events()).toEqual([["begun", "openai"]]);
  await age("sent_time");
  await look();
  expect(events()).toEqual([["lasting", "openai"]]);
  for (const { state } of all) state.conditions = [];
  await look();
  expect(events()).toEqual([]);
  // No process has reported it for long.
  await age("seen_time");
  await look();
  await look();
  expect(events()).toEqual([["ended", "openai"]]);
});

test("each process reports an unreachable database by itself, once, and its return", async () => {
  const sent: OperatorMessage[] = [];
  const { state, look } = createProcess(sent);
  state.conditions = [];
  state.outageMs = Date.now() - 60_000;
  await look();
  await look();
  state.outageMs = undefined;
  await look();
  expect(sent.map(({ name, event }) => [name, event])).toEqual([
    ["database_unreachable", "begun"],
    ["database_unreachable", "ended"],
  ]);
});

/** Channels to a receiver on this machine, which answers with these statuses. */
async function openChannels(format: "json" | "slack", statuses: readonly number[]) {
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    request.setEncoding("utf8");
    let body = "";
    request.on("data", (piece: string) => void (body += piece));
    request.on("end", () => {
      bodies.push(body);
      response.writeHead(statuses[bodies.length - 1] ?? 204).end();
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}/secret-path`;
  const outcomes: string[] = [];
  const lines: string[] = [];
  const channels = new OperatorChannels({
    addresses: () => ({ email: [], webhooks: [{ url, format }], repeat: 1 }),
    mailer: () => undefined,
    warn: (message, fields) => void lines.push(JSON.stringify([message, fields])),
    onDelivery: (outcome) => void outcomes.push(outcome),
    pausesMs: [0, 0],
  });
  return { channels, bodies, outcomes, lines, host: `127.0.0.1:${port}` };
}

const message: OperatorMessage = { ...refused, event: "begun", beginMs: 0, nowMs: 60_000 };

test("a webhook at a private address gets the alert as JSON, after a failed attempt too", async () => {
  const { channels, bodies, outcomes } = await openChannels("json", [503]);
  channels.post(message);
  await channels.ended();
  expect(outcomes).toEqual(["sent"]);
  expect(JSON.parse(bodies[1] ?? "")).toEqual({
    ...refused,
    event: "begun",
    beginTime: "1970-01-01T00:00:00.000Z",
    time: "1970-01-01T00:01:00.000Z",
  });
});

test("a chat gets one text; what cannot be sent is a log line without the secret address", async () => {
  const { channels, bodies, outcomes, lines, host } = await openChannels("slack", [404, 404, 404]);
  channels.post(message);
  await channels.ended();
  expect(JSON.parse(bodies[0] ?? "")).toEqual({
    text: expect.stringContaining("[UAS] Alert: credential refused (openai)\n\nThe vendor openai"),
  });
  expect([outcomes, lines.length]).toEqual([["failed"], 1]);
  expect(lines[0]).toContain(`"to":"${host}"`);
  expect(lines[0]).not.toContain("secret-path");
  const [delivery] = await channels.test(0);
  expect(delivery).toEqual({ to: host, problem: undefined });
});
