/**
 * Sends calls through every vendor kind while its replies are damaged, and checks the outcome of
 * each class of faults.
 */
import { auditLedger } from "../../../src/billing/audit/audit.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { type Flow, flows, sendFlow } from "./fault-flows.ts";
import {
  type Case,
  casesOf,
  outcomeOf,
  problemOf,
  type Row,
  type Seen,
  statusOf,
  type Usual,
} from "./fault-outcomes.ts";
import { Chance } from "./random.ts";
import type { Plan, VendorProxies } from "./vendor-proxy.ts";
import type { World } from "./world.ts";

/**
 * Members of all vendors. A stalled reply ends within the timeouts, and a busy machine is no fault;
 * `total` ends replies of vendors that may work for long. Breakers stay closed: each call must meet
 * its own fault.
 */
export const faultMembers = {
  timeouts: { connect: "4s", first_byte: "4s", idle: "4s", total: "12s" },
  breaker: { failures: 1_000, window: "1s" },
};

/** Options of {@link runFaults}. */
export interface FaultOptions {
  readonly calls: number;
  readonly seed: number;
  readonly lanes: number;
  /** A part of the names of the flows to use. Default: all. */
  readonly only?: string;
  readonly onProgress?: (done: number) => void;
}

/** Findings of a run. */
export interface FaultReport {
  readonly calls: number;
  /** Calls by class. */
  readonly classes: Readonly<Record<string, number>>;
  /** Calls that were sent again because the gateway refused them before it asked their vendor. */
  readonly repeated: number;
  readonly findings: readonly string[];
}

/** Runs it: each case in turn, then what the books say of all of them. */
export async function runFaults(
  world: World,
  proxies: VendorProxies,
  { calls, seed, lanes, only = "", onProgress }: FaultOptions,
): Promise<FaultReport> {
  const all = flows().filter(({ name }) => name.includes(only));
  if (all.length === 0)
    throw new Error(
      `--only must be a part of: ${flows()
        .map(({ name }) => name)
        .join(", ")}`,
    );
  const usual = await callsWithoutFault(world, proxies, all);
  const combinations = shuffle(all.flatMap(casesOf), new Chance(seed));
  // One of thirty finds its vendor unreachable. These come last, because a vendor that refuses
  // connections refuses all. A task retries such a vendor for minutes.
  const refusable = all.filter(({ job, isJob }) => job === undefined || isJob);
  const refusedCount = Math.ceil(calls / 30);
  const cases = Array.from({ length: calls }, (_, index): Case => {
    const number = firstNumber + index;
    const flow = refusable[index % refusable.length];
    if (index >= calls - refusedCount && flow !== undefined)
      return { number, flow, kind: "refuse", phase: "connect", step: "submit" };
    return { number, ...(combinations[index % combinations.length] as Omit<Case, "number">) };
  });
  const seen = new Map<Case, Seen>();
  let next = 0;
  let repeated = 0;
  const sendUntilAsked = async (first: Case): Promise<readonly [Case, Seen]> => {
    for (let [each, tries] = [first, 1]; ; tries++) {
      const { kind, phase, step } = each;
      const plan: Plan = { ...{ kind, phase, step }, times: 1, asked: 0, met: 0 };
      proxies.plans.set(each.number, plan);
      const reply = await call(world, each);
      const isRefused = reply.status === 503 && plan.asked === 0 && kind !== "refuse";
      if (!isRefused || tries === triesMax) return [each, reply];
      each = { ...each, number: firstNumber + calls + repeated++ };
    }
  };
  const lane = async (end: number): Promise<void> => {
    while (next < end) {
      const each = cases[next++] as Case;
      const [sent, reply] = await sendUntilAsked(each);
      seen.set(sent, reply);
      if (seen.size % 500 === 0) onProgress?.(seen.size);
      if (seen.size % 100 === 0) world.vendors.clear();
    }
  };
  const runTo = (end: number) => Promise.all(Array.from({ length: lanes }, () => lane(end)));
  await runTo(calls - refusedCount);
  await proxies.refuse();
  await runTo(calls);
  const findings = await checkMoney(world);
  const rows = await readRows(world);
  const classes: Record<string, number> = {};
  for (const [each, reply] of seen) {
    const outcome = outcomeOf(each);
    classes[outcome] = (classes[outcome] ?? 0) + 1;
    const plan = proxies.plans.get(each.number) as Plan;
    const about = { reply, rows: rows.get(`fault-${each.number}`) ?? [], plan };
    const problem = problemOf(each, { ...about, usual: usual.get(each.flow) as Usual });
    if (problem !== undefined) {
      const { flow, kind, phase, step } = each;
      findings.push(
        `${flow.name}, ${kind} at ${phase} of ${step}: ${problem}; ${reply.status} ${reply.text.slice(-200)}`,
      );
    }
  }
  for (const line of world.gateway.errors) findings.push(`log: ${line.slice(0, 500)}`);
  return { calls: seen.size, classes, repeated, findings };
}

/**
 * Maximum number of tries of a call that is refused before its vendor is called: on a busy machine
 * holds time out.
 */
const triesMax = 30;

/** Numbers of equal length: requests of equal length cost the same if a charge is estimated. */
const firstNumber = 2_000_000;

async function callsWithoutFault(
  world: World,
  proxies: VendorProxies,
  all: readonly Flow[],
): Promise<Map<Flow, Usual>> {
  const statuses: (string | undefined)[] = [];
  for (const [index, flow] of all.entries()) {
    const number = firstNumber - 1 - index;
    const step = "submit";
    const plan: Plan = { kind: "none", phase: "after", step, times: 0, asked: 0, met: 0 };
    proxies.plans.set(number, plan);
    let reply = await call(world, { flow, number, phase: "after" });
    for (let tries = 1; reply.status === 503 && tries < triesMax; tries++) {
      reply = await call(world, { flow, number, phase: "after" });
    }
    const { status, text } = reply;
    if (status >= 300) throw new Error(`${flow.name} without a fault: ${status} ${text}`);
    if (plan.asked === 0) throw new Error(`${flow.name} does not pass its proxy`);
    statuses.push(statusOf(text));
  }
  await holdsEnded(world);
  const rows = await readRows(world);
  return new Map(
    all.map((flow, index): [Flow, Usual] => {
      const found = rows.get(`fault-${firstNumber - 1 - index}`) ?? [];
      const row = found.find(({ cost }) => cost !== "0") ?? found[0];
      if (row === undefined) throw new Error(`${flow.name} has no record`);
      return [flow, { cost: BigInt(row.cost), ending: row.ending, status: statuses[index] }];
    }),
  );
}

/**
 * Text that is behind the mark where a fault comes during the upload: more than the system takes at
 * once.
 */
const longText = "x ".repeat(300_000);

async function call(
  world: World,
  { flow, number, phase }: Pick<Case, "flow" | "number" | "phase">,
): Promise<Seen> {
  const timer = new AbortController();
  const mark = `#${number}#${phase === "upload" ? longText : ""}`;
  const reply = await Promise.race([
    sendFlow(world, flow, { id: `fault-${number}`, mark }),
    sleep(hangMs, undefined, { signal: timer.signal }),
  ]);
  timer.abort();
  if (reply === undefined) return { status: 0, text: "", isCut: true, retry: undefined };
  const retry = reply.headers["x-should-retry"];
  return { status: reply.status, text: reply.body.toString(), isCut: reply.isCut, retry };
}

/** A call that takes longer hangs: well above all timeouts. */
const hangMs = 60_000;

async function readRows({ pool }: World): Promise<Map<string, Row[]>> {
  const { rows } = await pool.query<Row>(`
    select c.request_id, c.ending, c.cost::text as cost,
        coalesce(jsonb_array_length(c.attempts), 0) as attempts, coalesce(e.charged, 0)::text as charged
      from call c left join (
        select coalesce(call_id, txn_id) as id, sum(amount) as charged
          from ledger_entry where account = 2 group by 1) e on e.id = c.id
      where c.request_id like 'fault-%'`);
  return Map.groupBy(rows, (row) => row.request_id);
}

/** Waits until nothing is held. @throws after a minute */
async function holdsEnded({ pool }: World): Promise<void> {
  for (const end = performance.now() + 60_000; ; ) {
    const { rows } = await pool.query("select 1 from open_hold limit 1");
    if (rows.length === 0) return;
    if (performance.now() > end) throw new Error("a hold is open after 60 s");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/**
 * No hold is open, the audit passes, and the balance is what was paid in without what was charged.
 */
async function checkMoney(world: World): Promise<string[]> {
  try {
    await holdsEnded(world);
  } catch (error) {
    return [String(error)];
  }
  const findings = (await auditLedger(world.pool)).map(({ rule, detail }) => `${rule}: ${detail}`);
  const { rows } = await world.pool.query<{ balance: string; spent: string }>(
    `select available::text as balance,
        (select coalesce(sum(cost), 0)::text from call where account_id = $1) as spent
      from balance where account_id = $1`,
    [world.rich.accountId],
  );
  const { balance = "0", spent = "0" } = rows[0] ?? {};
  if (BigInt(balance) + BigInt(spent) !== 10n ** 15n)
    findings.push(`balance ${balance}, spent ${spent}`);
  return findings;
}

function shuffle<T>(all: T[], chance: Chance): T[] {
  for (let at = all.length - 1; at > 0; at--) {
    const other = chance.below(at + 1);
    [all[at], all[other]] = [all[other] as T, all[at] as T];
  }
  return all;
}
