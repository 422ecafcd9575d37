/**
 * Two gateways on a replicated database whose primary dies or freezes under load; afterwards the
 * ledger is compared with the answers of customers.
 */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { Client, Pool } from "pg";
import { journalSuffix } from "../../../src/billing/journal/journal-files.ts";
import { type Findings, noFindings, note } from "../chaos/check.ts";
import { DeadHolds } from "../chaos/dead-holds.ts";
import { checkCalls, inputTokens } from "../chaos/gateway-work.ts";
import { Process } from "../../behaviour/lifecycle/process.ts";
import {
  type PostgresPrograms,
  type Replicated,
  startReplicated,
} from "../../support/replicated.ts";
import { answer } from "../../support/upstream/behaviour.ts";
import { startUpstream, type Upstream } from "../../support/upstream/upstream.ts";
import { type Haproxy, startHaproxy } from "./haproxy.ts";
import {
  type Address,
  beginStream,
  createCustomer,
  type Customer,
  type Kind,
  Load,
  operatorToken,
  topUpNanos,
} from "./load.ts";

/** Failure of the primary. */
export type Failure = "killed" | "frozen";

/** Options of {@link runFailover}. */
export interface FailoverOptions {
  readonly failure: Failure;
  /** Time of customers' work before the failure, and after service has resumed. */
  readonly loadMs: number;
  /** Time without a primary. */
  readonly outageMs: number;
  /** Default: the embedded PostgreSQL's. */
  readonly programs?: PostgresPrograms;
  /** Whether the servers may lose data with the machine's power: quicker. Default false. */
  readonly isFast?: boolean;
  /**
   * Whether the second gateway is killed with -9 just before the primary fails. It is started again
   * after the promotion. Default false.
   */
  readonly killsGateway?: boolean;
}

/** Result of a failover. */
export interface FailoverResult {
  readonly acknowledged: number;
  readonly refused: number;
  /** From the promotion until each kind of request was acknowledged at each gateway. */
  readonly resumeMs: number;
  /** The longest wait for a refusal of each kind. */
  readonly refusalMsMax: Readonly<Partial<Record<Kind, number>>>;
  /** Answers other than success and 503, and those that never came: by status, 0 for none. */
  readonly others: Readonly<Record<string, number>>;
  /** Other failed tasks, by error. */
  readonly failedTasks: Readonly<Record<string, number>>;
  /**
   * Tasks that failed because they may have been with their vendor when their gateway was killed,
   * by error.
   */
  readonly deadTasks: Readonly<Record<string, number>>;
  /** Settlements that were in journals just before the promotion. */
  readonly journalFiles: number;
  readonly findings: Findings;
  /** Output of a failed `uas ledger audit`. */
  readonly auditFailure: string | undefined;
  /**
   * From the death of the gateway that was killed until its holds had ended; undefined if none was.
   */
  readonly deadHoldsMs: number | undefined;
}

/** Maximum time to resume service after a promotion. */
const resumeMsMax = 10_000;

/** Maximum time of a refusal: a second, and an allowance for a busy machine. */
const refusalMsMax = 3_000;

/**
 * Whether there was an outage in which nothing was lost, doubled or left over, and every customer
 * got an answer in time.
 */
export function isRight(result: FailoverResult): boolean {
  const { lost, doubled, drift, stuck } = result.findings;
  return (
    lost + doubled + drift + stuck === 0 &&
    result.refused > 0 &&
    Object.keys(result.others).length === 0 &&
    Object.keys(result.failedTasks).length === 0 &&
    result.auditFailure === undefined &&
    result.resumeMs <= resumeMsMax &&
    Object.values(result.refusalMsMax).every((ms) => ms <= refusalMsMax)
  );
}

/** Maximum time of a start on a busy machine. */
const startLimitMs = 180_000;

const noAddress: Address = { url: "", internalUrl: "" };

/** The message of a stream that the vendor never ends. */
const endlessText = "Endless";

/** Log line with the addresses of a gateway. */
const listening = /"listenUrl":"([^"]+)","internalUrl":"([^"]+)"/;

/** Maximum time to resume service before the run fails. */
const resumeLimitMs = 60_000;

/** Maximum time to recover calls, tasks and journals. */
const cleanLimitMs = 90_000;

/** The usage that the vendor reports for each call. */
const usage = { prompt_tokens: inputTokens, completion_tokens: 5, total_tokens: inputTokens + 5 };

/** The cost of each whole call at the prices of the configuration, in nano-USD. */
const costNanos = 25n * 250n + 5n * 2_000n;

const bin = join(import.meta.dirname, "../../../bin/uas.js");

/** Runs one failover in a separate folder. @throws if HAProxy is not installed */
export async function runFailover(options: FailoverOptions): Promise<FailoverResult> {
  const folder = mkdtempSync(join(tmpdir(), "uas-ha-"));
  const vendor = await startUpstream();
  const usual = answer({ usage, gapMs: 10, delayMs: 10 });
  const endless = answer({ usage, cutAfter: 2, ending: "hang" });
  vendor.always((exchange) =>
    (exchange.request.body.includes(endlessText) ? endless : usual)(exchange),
  );
  const processes: Process[] = [];
  let replicated: Replicated | undefined;
  let proxy: Haproxy | undefined;
  try {
    const { programs, isFast = false } = options;
    replicated = await startReplicated(folder, { isFast, ...(programs && { programs }) });
    const servers = [replicated.primary, replicated.standby];
    proxy = await startHaproxy({ folder, servers });
    return await new Failover(options, { folder, vendor, replicated, proxy, processes }).run();
  } finally {
    for (const process of processes) await process.kill();
    await proxy?.close();
    await replicated?.close();
    await vendor.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Parts {
  readonly folder: string;
  readonly vendor: Upstream;
  readonly replicated: Replicated;
  /** The gateways reach the database through it. */
  readonly proxy: Haproxy;
  readonly processes: Process[];
}

class Failover {
  readonly #options: FailoverOptions;
  readonly #parts: Parts;

  constructor(options: FailoverOptions, parts: Parts) {
    this.#options = options;
    this.#parts = parts;
  }

  async run(): Promise<FailoverResult> {
    const { primary, standby } = this.#parts.replicated;
    // One after the other: the first migrates.
    const addresses = [await this.#start(0), await this.#start(1)];
    const [first = noAddress, second = noAddress] = addresses;
    const customer = await createCustomer(first);
    const load = new Load(addresses, customer);
    await load.acknowledged(3, 0, resumeLimitMs);
    await sleep(this.#options.loadMs);

    const dead = new DeadHolds((text, values) => this.#ask(text, values));
    const killsGateway = this.#options.killsGateway === true;
    if (killsGateway) await this.#killGateway({ load, dead, address: second, key: customer.key });
    const killTime = killsGateway ? new Date() : undefined;
    if (this.#options.failure === "killed") await primary.kill();
    else primary.freeze();
    await sleep(this.#options.outageMs);
    const journalFiles = this.#journalFiles();
    await standby.promote();
    this.#parts.proxy.lead(standby);
    const promotedMs = performance.now();
    const resumeMs = (await load.acknowledged(1, promotedMs, resumeLimitMs)) - promotedMs;
    const findings = noFindings();
    if (this.#options.failure === "frozen") await this.#thaw(findings);
    if (killsGateway) await this.#start(1);
    await sleep(this.#options.loadMs);
    await load.stop();

    const deadHoldsMs = killsGateway ? await dead.check(findings) : undefined;
    const tasks = await this.#check({ url: standby.url, load, customer, killTime, findings });
    const auditFailure = await this.#audit();
    for (const process of this.#parts.processes.filter(({ isRunning }) => isRunning)) {
      const { code } = await process.stop();
      if (code !== 0) note(findings, "stuck", `a gateway ended with exit code ${code}`);
    }
    const refused = load.attempts.filter(({ status }) => status === 503);
    const waits = Object.entries(Object.groupBy(refused, ({ kind }) => kind)).map(
      ([kind, group]) => [kind, Math.max(...group.map(({ startMs, endMs }) => endMs - startMs))],
    );
    const others = load.attempts.filter(
      ({ status, isKilled }) => status !== 200 && status !== 503 && !isKilled,
    );
    return {
      acknowledged: load.attempts.filter(({ isAcknowledged }) => isAcknowledged).length,
      refused: refused.length,
      resumeMs,
      refusalMsMax: Object.fromEntries(waits),
      others: countOf(others.map(({ kind, status }) => `${kind} ${status}`)),
      ...tasks,
      journalFiles,
      findings,
      auditFailure,
      deadHoldsMs,
    };
  }

  /** Kills the second gateway while a stream of it has an open hold. */
  async #killGateway({
    load,
    dead,
    address,
    key,
  }: {
    load: Load;
    dead: DeadHolds;
    address: Address;
    key: string;
  }): Promise<void> {
    const [, gateway] = this.#parts.processes;
    if (gateway === undefined) throw new RangeError("there is one gateway only");
    const endless = beginStream(address.url, key, endlessText);
    // Waits for the standby, which is queried while there is no primary.
    await this.#parts.replicated.standby.until(
      `select 1 from open_hold h join node n on n.id = h.node_id where n.name like '%:${gateway.pid}'`,
    );
    load.leave(1);
    await gateway.kill();
    dead.add(gateway.pid);
    await endless;
  }

  /** Asks the server that is, or is to be, the primary. */
  async #ask(text: string, values: readonly string[]): Promise<{ readonly rows: object[] }> {
    const client = new Client({ connectionString: this.#parts.replicated.standby.url });
    client.on("error", () => {});
    try {
      await client.connect();
      return await client.query<object>(text, [...values]);
    } finally {
      await client.end().catch(() => {});
    }
  }

  /** Starts a gateway with a separate data folder. */
  async #start(index: number): Promise<Address> {
    const { folder, processes } = this.#parts;
    const place = join(folder, `gateway-${index}`);
    mkdirSync(place, { recursive: true });
    writeFileSync(join(place, "uas.yaml"), this.#yaml());
    const process = new Process({ folder: place, close() {} }, this.#env());
    processes.push(process);
    for (const end = performance.now() + startLimitMs; performance.now() < end; await sleep(20)) {
      const [, url = "", internalUrl = ""] = listening.exec(process.out) ?? [];
      if (url !== "") return { url, internalUrl };
      if (!process.isRunning) break;
    }
    throw new Error(`a gateway did not start: ${process.out}${process.err}`);
  }

  #env(): Record<string, string> {
    const { vendor, proxy } = this.#parts;
    return {
      DATABASE_URL: proxy.url,
      VENDOR_KEY: vendor.secret,
      UAS_OPERATOR_TOKEN: operatorToken,
      UAS_MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
    };
  }

  #yaml(): string {
    const price = '{ input: "0.25", output: "2.00" }';
    return `version: 1
vendors:
  sim: { kind: openai-compatible, base_url: "${this.#parts.vendor.baseUrl}", api_key: "\${env:VENDOR_KEY}" }
models:
  m: { type: TEXT, routes: [{ vendor: sim, model: vendor-model }], max_output_tokens: 100, price: ${price} }
`;
  }

  #journalFiles(): number {
    return [0, 1].reduce((sum, index) => {
      const journal = join(this.#parts.folder, `gateway-${index}`, ".data", "journal");
      return sum + readdirSync(journal).filter((name) => name.endsWith(journalSuffix)).length;
    }, 0);
  }

  /**
   * The old primary continues and considers itself the primary: nothing can be acknowledged there.
   */
  async #thaw(findings: Findings): Promise<void> {
    const { primary } = this.#parts.replicated;
    primary.thaw();
    await primary.until("select 1 where not pg_is_in_recovery()");
    const written = primary.query("create table fence ()").then(() => "written");
    written.catch(() => {});
    const waiting =
      "select 1 from pg_stat_activity where wait_event = 'SyncRep' and query like '%fence%'";
    const seen = await Promise.race([written, primary.until(waiting).then(() => "waiting")]);
    if (seen === "written") note(findings, "drift", "the old primary acknowledged a write");
  }

  async #check({
    url,
    load,
    customer,
    killTime,
    findings,
  }: {
    url: string;
    load: Load;
    customer: Customer;
    killTime: Date | undefined;
    findings: Findings;
  }): Promise<FailedTasks> {
    const pool = new Pool({ connectionString: url, max: 2 });
    try {
      await this.#checkClean(pool, findings);
      const [topUps, calls] = [[] as string[], new Map<string, { isWhole: boolean }>()];
      for (const { kind, id, isAcknowledged } of load.attempts) {
        // A task that is acknowledged may still fail; its record must be right.
        if (kind !== "top-up") calls.set(id, { isWhole: isAcknowledged && kind !== "task" });
        else if (isAcknowledged) topUps.push(id);
      }
      await checkCalls(pool, { seen: calls, costNanos }, findings);
      await checkTopUps(pool, { accountId: customer.accountId, topUps }, findings);
      return await checkTasks(pool, { load, killTime }, findings);
    } finally {
      await pool.end();
    }
  }

  /** Waits until nothing runs and nothing is stored. */
  async #checkClean(pool: Pool, findings: Findings): Promise<void> {
    const text = `select (select count(*) from open_hold)::int as holds,
      (select count(*) from task where finish_time is null)::int as tasks`;
    for (const end = performance.now() + cleanLimitMs; ; await sleep(100)) {
      const { rows } = await pool.query<{ holds: number; tasks: number }>(text);
      const { holds = 0, tasks = 0 } = rows[0] ?? {};
      const files = this.#journalFiles();
      if (holds + tasks + files === 0) return;
      if (performance.now() < end) continue;
      return note(findings, "stuck", `${holds} holds, ${tasks} tasks, ${files} files of journals`);
    }
  }

  /** Does not block, because the proxy asks this process for the primary. */
  async #audit(): Promise<string | undefined> {
    const cwd = join(this.#parts.folder, "gateway-0");
    const env = { PATH: process.env["PATH"], ...this.#env() };
    const audit = promisify(execFile)(process.execPath, [bin, "ledger", "audit"], { cwd, env });
    return audit.then(
      () => undefined,
      ({ stdout, stderr }: { readonly stdout: string; readonly stderr: string }) => stdout + stderr,
    );
  }
}

/** Each acknowledged top-up exists once. One without an answer may exist, too. */
async function checkTopUps(
  pool: Pool,
  { accountId, topUps }: { readonly accountId: string; readonly topUps: readonly string[] },
  findings: Findings,
): Promise<void> {
  const { rows } = await pool.query<{ reference: string; count: number; amount: string }>(
    `select reference, count(*)::int as count, sum(amount)::text as amount from ledger_entry
      where account_id = $1 and account = 1 and reference is not null group by reference`,
    [accountId],
  );
  const booked = new Map(rows.map((row) => [row.reference, row]));
  for (const id of topUps) {
    if (!booked.has(id)) note(findings, "lost", `top-up ${id} was acknowledged and is not booked`);
  }
  for (const { reference, count, amount } of rows) {
    const size = BigInt(amount) < 0n ? -BigInt(amount) : BigInt(amount);
    if (count !== 1 || size !== topUpNanos) {
      note(findings, "doubled", `top-up ${reference} is booked ${count} times: ${amount}`);
    }
  }
}

type FailedTasks = Pick<FailoverResult, "failedTasks" | "deadTasks">;

/**
 * The errors of tasks whose process died while they were with a vendor that cannot be asked again:
 * see docs/tasks.md.
 */
const deadErrors: readonly string[] = ["upstream_submit_unknown", "result_unavailable"];

/** Each acknowledged task exists. Returns the failed ones, which are free. */
async function checkTasks(
  pool: Pool,
  { load, killTime }: { readonly load: Load; readonly killTime: Date | undefined },
  findings: Findings,
): Promise<FailedTasks> {
  const { rows } = await pool.query<{
    request_id: string;
    create_time: Date;
    error_code: string | null;
  }>("select request_id, create_time, error_code from task");
  const made = new Set(rows.map((row) => row.request_id));
  for (const { kind, id, isAcknowledged } of load.attempts) {
    if (kind !== "task" || !isAcknowledged || made.has(id)) continue;
    note(findings, "lost", `task ${id} was acknowledged and is not there`);
  }
  const failed = rows.flatMap(({ error_code: code, create_time: time }) => {
    if (code === null) return [];
    const isDead = killTime !== undefined && time <= killTime && deadErrors.includes(code);
    return [{ code, isDead }];
  });
  const counted = (isDead: boolean): Record<string, number> =>
    countOf(failed.filter((each) => each.isDead === isDead).map(({ code }) => code));
  return { failedTasks: counted(false), deadTasks: counted(true) };
}

function countOf(words: readonly string[]): Record<string, number> {
  const groups = Map.groupBy(words, (word) => word);
  return Object.fromEntries([...groups].map(([word, { length }]) => [word, length]));
}
