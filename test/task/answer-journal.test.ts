/** Processes that are killed while the database is away, with answers of vendors that nobody else knows. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  expect,
  onTestFinished,
  test,
  vi,
} from "vitest";
import { AnswerJournal } from "../../src/task/work/answer-journal.ts";
import type { WorkerVendor } from "../../src/task/work/worker-options.ts";
import { compiledEnv } from "../support/child.ts";
import { startFaultProxy } from "../support/fault-proxy.ts";
import { type AnswerKind, answers, masterKey, picture } from "./answers.ts";
import { openTasks, type Tasks, until } from "./worker-harness.ts";
import { imageNanos, one, vendor } from "./worker-setup.ts";

let tasks: Tasks;
let parent: string;
let folder: string;
beforeAll(async () => void (tasks = await openTasks()));
beforeEach(() => {
  parent = fs.mkdtempSync(join(tmpdir(), "uas-answers-"));
  folder = join(parent, "answers");
});
afterEach(async () => {
  await tasks.stopAll();
  await tasks.expectClean();
  fs.rmSync(parent, { recursive: true, force: true });
});
afterAll(() => tasks.close());

function files(suffix: string): string[] {
  return fs.existsSync(folder) ? fs.readdirSync(folder).filter((n) => n.endsWith(suffix)) : [];
}

const prompt = "a secret prompt";

/** A process gets an answer while the database is away, and is killed once it is durable. Returns its task. */
async function killWithAnswer(kind: AnswerKind): Promise<{ id: string; accountId: string }> {
  const proxy = await startFaultProxy(tasks.url);
  onTestFinished(() => proxy.close());
  const accountId = await tasks.account(1_000n);
  const params = { images: 1, prompt };
  const id = await tasks.submit({ accountId, params, callbackUrl: "https://receiver.test/" });
  const child = start(proxy.url, kind);
  await once(child, "message");
  proxy.refuse(true);
  proxy.cut();
  child.send("answer");
  await until(async () => files(".journal").some((name) => sizeOf(name) > 0) || undefined);
  const exit = once(child, "exit");
  child.kill("SIGKILL");
  await exit;
  return { id, accountId };
}

function start(url: string, kind: AnswerKind): ChildProcess {
  const args = [join(import.meta.dirname, "answer-child.ts"), url, folder, kind];
  const env = { ...process.env, ...compiledEnv };
  return spawn(process.execPath, args, { stdio: ["ignore", "inherit", "inherit", "ipc"], env });
}

function sizeOf(name: string): number {
  return fs.statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0;
}

function journal(key = masterKey, alarm = vi.fn()): AnswerJournal {
  return new AnswerJournal({ folder, pool: tasks.pool, masterKey: key, alarm });
}

/** One that must not be asked for anything new. */
function blind(): WorkerVendor & { readonly asked: string[] } {
  return vendor({
    resubmit: "blind",
    restoreRows: (_, rows) =>
      Promise.resolve(async (transaction) => {
        const sql = `insert into task_event (task_id, kind, state)
          select id, $1, state from task where attempt_token is not null and state = 'completed'
          and not exists (select from task_event where kind = $1)`;
        await transaction.query(sql, [rows["word"]]);
      }),
  });
}

test.each(Object.keys(answers) as AnswerKind[])(
  "R-TSK-7: an answer %s survives kill -9 during an outage, is charged once, and its vendor is not asked again",
  async (kind) => {
    const { id, accountId } = await killWithAnswer(kind);
    for (const name of files("")) {
      expect(fs.statSync(join(folder, name)).mode & 0o777).toBe(0o600);
      const text = fs.readFileSync(join(folder, name), "latin1");
      for (const secret of [prompt, picture, Buffer.from(picture).toString("base64")])
        expect(text).not.toContain(secret);
    }
    const v = blind();
    tasks.work({ ...one({ v }), answers: journal() });
    const [row] = await tasks.ended([id]);
    expect(row).toMatchObject({ state: "completed", cost: String(imageNanos), error_code: null });
    expect(row?.result?.text).toBe("done" in answers[kind].submitted ? textOf(kind) : undefined);
    const ends = (await tasks.told(id)).filter(({ status }) => status !== "progress");
    expect(ends).toMatchObject([{ status: "completed" }]);
    expect(await tasks.balance(accountId)).toEqual({ available: 1_000n - imageNanos, held: 0n });
    expect(await tasks.events(id, "kept")).toHaveLength(kind === "with rows of its own" ? 1 : 0);
    expect(v.asked).toEqual([]);
    // Nothing is left that could be replayed once more.
    await until(async () => files(".journal").length === 0 || undefined);
  },
  180_000,
);

function textOf(kind: AnswerKind): string | undefined {
  const { submitted } = answers[kind];
  return "done" in submitted ? submitted.done.text : undefined;
}

test("an answer whose task another process has given up is recorded as late, and changes nothing", async () => {
  const { id, accountId } = await killWithAnswer("with the result");
  await tasks.pool.query("update task set lease_until = now(), next_time = now()");
  const v = blind();
  const other = tasks.work({ ...one({ v }), warn: () => {} });
  expect(await tasks.ended([id])).toMatchObject([{ error_code: "upstream_submit_unknown" }]);
  await other.stop();
  tasks.work({ ...one({ v }), warn: () => {}, answers: journal() });
  await until(async () => (await tasks.events(id, "late"))[0]);
  await until(async () => files(".journal").length === 0 || undefined);
  expect(await tasks.row(id)).toMatchObject({ state: "failed", cost: "0" });
  expect(await tasks.balance(accountId)).toEqual({ available: 1_000n, held: 0n });
  expect(v.asked).toEqual([]);
}, 180_000);

test("an answer that was sealed with another master key is kept for an operator", async () => {
  const { id } = await killWithAnswer("that it has the task");
  const alarm = vi.fn();
  tasks.work({ ...one({ v: blind() }), answers: journal(Buffer.alloc(32, 8), alarm) });
  await until(async () => files(".damaged")[0]);
  expect(alarm).toHaveBeenCalledWith(expect.stringContaining("answers that"), expect.anything());
  await tasks.pool.query("update task set lease_until = now(), next_time = now()");
  await tasks.ended([id]);
}, 180_000);

test("answers that the database takes at once are written nowhere", async () => {
  const accountId = await tasks.account();
  const ids = [await tasks.submit({ accountId }), await tasks.submit({ accountId })];
  const { submitted } = answers["with the result"];
  const v = vendor({ resubmit: "blind", submit: () => Promise.resolve(submitted) });
  const own = journal();
  const kept = vi.spyOn(own, "hold");
  tasks.work({ ...one({ v }), answers: own });
  await tasks.ended(ids);
  expect(kept).toHaveBeenCalledTimes(2);
  expect([own.entries, files(".journal")]).toEqual([0, []]);
});
