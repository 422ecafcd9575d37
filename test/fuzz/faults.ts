/** Calls through every vendor kind while its replies are hurt, and what each class of faults must come to. */
import { auditLedger } from "../../src/billing/ledger/audit.ts";
import { CallEnding } from "../../gen/uas/billing/v1/call_pb.ts";
import { type Caller, callerPaths, callerRequest } from "../facade/vanishing.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { type RawReply, send } from "../support/raw-http.ts";
import { Chance } from "./random.ts";
import { textVendors } from "./vendors.ts";
import type { FaultKind, Phase, Plan, VendorProxies } from "./vendor-proxy.ts";
import type { World } from "./world.ts";

/** The vendors behind a proxy. The kind `demo` answers within the gateway: there is nothing to hurt. */
export const proxiedVendors: readonly string[] = [
  ...textVendors.map((name) => `text-${name}`),
  "media",
  ...["gemini", "replicate", "dashscope", "fal"].map((name) => `native-${name}`),
];

/** Timeouts of all vendors: a stalled reply ends within, and a busy machine is no fault. */
export const faultTimeouts = { connect: "4s", first_byte: "4s", idle: "4s" };

/** Options of {@link runFaults}. */
export interface FaultOptions {
  readonly calls: number;
  readonly seed: number;
  readonly lanes: number;
  readonly onProgress?: (done: number) => void;
}

/** What a run found. */
export interface FaultReport {
  readonly calls: number;
  /** Calls by class. */
  readonly classes: Readonly<Record<string, number>>;
  /** Calls that were sent again because the gateway refused them before it asked their vendor. */
  readonly repeated: number;
  readonly findings: readonly string[];
}

/** A way to call a vendor. */
interface Flow {
  readonly name: string;
  readonly path: string;
  readonly body: (mark: string) => object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly isStream: boolean;
  /** What a whole stream ends with. */
  readonly terminal?: string;
  /** Whether a job may be running at the vendor after a failure: then it is never sent again (R-ERR-5). */
  readonly isJob?: boolean;
}

interface Case {
  readonly number: number;
  readonly flow: Flow;
  readonly kind: FaultKind;
  readonly phase: Phase;
}

interface Seen {
  readonly status: number;
  readonly text: string;
  readonly isCut: boolean;
  readonly retry: string | undefined;
}

interface Row {
  readonly request_id: string;
  readonly ending: number;
  readonly cost: string;
  readonly attempts: number;
  readonly charged: string;
}

/**
 * What must come of a call. `same`: the reply, its end and its charge are those of a call without fault. `failed`: no
 * content came, an error and no charge. `broken`: content came, then an error event or a break, and a charge that is not
 * more than for all of it. `any`: the vendor's bytes say something else, and the gateway may believe them.
 */
type Outcome = "same" | "failed" | "broken" | "any";

const kinds: readonly FaultKind[] = [
  ...(["delay", "cut", "reset", "stall", "duplicate", "corrupt"] as const),
  ...(["drip", "compress", "compress-broken"] as const),
];
const phases: readonly Phase[] = ["connect", "head", "first", "mid", "end", "after"];

function outcomeOf({ flow, kind, phase }: Case): Outcome {
  if (kind === "none" || kind === "delay" || kind === "drip" || kind === "compress") return "same";
  if (kind === "compress-broken") return flow.isStream ? "any" : "failed";
  if (kind === "duplicate" || kind === "corrupt") {
    if (phase === "after") return "same";
    return phase === "connect" && kind === "duplicate" ? "same" : "any";
  }
  // Cut, reset and stall.
  if (phase === "after") return kind === "reset" ? "any" : "same";
  if (phase === "connect" || phase === "head") return "failed";
  if (!flow.isStream) return "failed";
  if (phase === "first") return "failed";
  return phase === "mid" ? "broken" : "any";
}

function flows(): Flow[] {
  const callers: readonly Caller[] = ["chat", "responses", "messages"];
  const terminals = { chat: "[DONE]", responses: "response.completed", messages: "message_stop" };
  const text = callers.flatMap((caller) =>
    textVendors.flatMap((vendor) =>
      [false, true].map((isStream): Flow => {
        const model = `m-${vendor}`;
        return {
          name: `${caller} to ${vendor}${isStream ? ", streamed" : ""}`,
          path: callerPaths[caller],
          body: (mark) => callerRequest(caller, { model, stream: isStream, text: `greet ${mark}` }),
          isStream,
          ...(isStream && { terminal: terminals[caller] }),
        };
      }),
    ),
  );
  const whole = (name: string, path: string, body: Flow["body"], headers = {}): Flow => ({
    ...{ name, path, body, headers, isStream: false },
  });
  const contents = (mark: string) => ({ contents: [{ parts: [{ text: mark }] }] });
  const prompt = (mark: string) => ({ prompt: mark });
  const talk = (mark: string) => ({
    model: "qwen-plus",
    input: { messages: [{ role: "user", content: mark }] },
    parameters: { result_format: "message", incremental_output: true },
  });
  const services = "/dashscope/api/v1/services/aigc/text-generation/generation";
  return [
    ...text,
    whole("embeddings", "/v1/embeddings", (mark) => ({ model: "embed", input: mark })),
    {
      ...whole("images", "/v1/images/generations", (mark) => ({ model: "pictures", prompt: mark })),
      isJob: true,
    },
    whole("gemini native", "/gemini/v1beta/models/gemini-x:generateContent", contents),
    {
      ...whole(
        "gemini native, streamed",
        "/gemini/v1beta/models/gemini-x:streamGenerateContent?alt=sse",
        contents,
      ),
      isStream: true,
    },
    whole("dashscope native", services, talk),
    {
      ...whole("dashscope native, streamed", services, talk, { "x-dashscope-sse": "enable" }),
      isStream: true,
    },
    { ...whole("fal native", "/fal/run/fal-ai/flux/schnell", prompt), isJob: true },
    {
      ...whole(
        "replicate native",
        "/replicate/v1/models/labs/flux/predictions",
        (mark) => ({ input: prompt(mark) }),
        {
          prefer: "wait",
        },
      ),
      isJob: true,
    },
  ];
}

/** Runs it: each case in turn, then what the books say of all of them. */
export async function runFaults(
  world: World,
  proxies: VendorProxies,
  { calls, seed, lanes, onProgress }: FaultOptions,
): Promise<FaultReport> {
  const all = flows();
  const baseline = await costsWithoutFault(world, proxies, all);
  const chance = new Chance(seed);
  const combinations = shuffle(
    all
      .flatMap((flow) => kinds.flatMap((kind) => phases.map((phase) => ({ flow, kind, phase }))))
      // Vendors that make something while the request is open are waited for much longer than for text.
      .filter(({ flow, kind }) => !flow.isJob || kind !== "stall"),
    chance,
  );
  const cases = Array.from(
    { length: calls },
    (_, index): Case => ({
      number: firstNumber + index,
      ...(combinations[index % combinations.length] as Omit<Case, "number">),
    }),
  );
  const seen = new Map<Case, Seen>();
  let next = 0;
  let repeated = 0;
  const sendUntilAsked = async (first: Case): Promise<readonly [Case, Seen]> => {
    for (let [each, tries] = [first, 1]; ; tries++) {
      const plan: Plan = { kind: each.kind, phase: each.phase, times: 1, asked: 0 };
      proxies.plans.set(each.number, plan);
      const reply = await call(world, each.flow, each.number);
      const isRefused = reply.status === 503 && plan.asked === 0;
      if (!isRefused || tries === triesMax) return [each, reply];
      each = { ...each, number: firstNumber + calls + repeated++ };
    }
  };
  const lane = async (): Promise<void> => {
    for (;;) {
      const each = cases[next++];
      if (each === undefined) return;
      const [sent, reply] = await sendUntilAsked(each);
      seen.set(sent, reply);
      if (seen.size % 500 === 0) onProgress?.(seen.size);
      if (seen.size % 100 === 0) world.vendors.clear();
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  const findings = await checkMoney(world);
  const rows = await readRows(world);
  const classes: Record<string, number> = {};
  for (const [each, reply] of seen) {
    const outcome = outcomeOf(each);
    classes[outcome] = (classes[outcome] ?? 0) + 1;
    const plan = proxies.plans.get(each.number) as Plan;
    const about = { reply, rows: rows.get(`fault-${each.number}`) ?? [], plan };
    const problem = problemOf(each, outcome, { ...about, cost: baseline.get(each.flow) ?? 0n });
    if (problem !== undefined) {
      const { flow, kind, phase } = each;
      findings.push(
        `${flow.name}, ${kind} at ${phase}: ${problem}; ${reply.status} ${reply.text.slice(-200)}`,
      );
    }
  }
  for (const line of world.gateway.errors) findings.push(`log: ${line.slice(0, 500)}`);
  return { calls: seen.size, classes, repeated, findings };
}

/** How often a call is sent that is refused before its vendor is asked: on a busy machine holds come too late. */
const triesMax = 5;

/** Numbers of equal length: requests of equal length cost the same where a charge is estimated. */
const firstNumber = 1_000_000;

async function costsWithoutFault(
  world: World,
  proxies: VendorProxies,
  all: readonly Flow[],
): Promise<Map<Flow, bigint>> {
  for (const [index, flow] of all.entries()) {
    const plan: Plan = { kind: "none", phase: "after", times: 0, asked: 0 };
    proxies.plans.set(firstNumber - 1 - index, plan);
    const { status, text } = await call(world, flow, firstNumber - 1 - index);
    if (status >= 300) throw new Error(`${flow.name} without a fault: ${status} ${text}`);
    if (plan.asked !== 1) throw new Error(`${flow.name} does not pass its proxy`);
  }
  await holdsEnded(world);
  const rows = await readRows(world);
  return new Map(
    all.map((flow, index) => [
      flow,
      BigInt(rows.get(`fault-${firstNumber - 1 - index}`)?.[0]?.cost ?? 0),
    ]),
  );
}

async function call(world: World, flow: Flow, number: number): Promise<Seen> {
  const timer = new AbortController();
  const reply = await Promise.race([
    sendCall(world, flow, number),
    sleep(hangMs, undefined, { signal: timer.signal }),
  ]);
  timer.abort();
  if (reply === undefined) return { status: 0, text: "", isCut: true, retry: undefined };
  const retry = reply.headers["x-should-retry"];
  return { status: reply.status, text: reply.body.toString(), isCut: reply.isCut, retry };
}

/** A call that takes longer hangs, in milliseconds: well above all timeouts. */
const hangMs = 25_000;

function sendCall(world: World, flow: Flow, number: number): Promise<RawReply> {
  return send(`${world.gateway.url}${flow.path}`, {
    headers: {
      authorization: `Bearer ${world.rich.key}`,
      "content-type": "application/json",
      "x-request-id": `fault-${number}`,
      ...flow.headers,
    },
    body: JSON.stringify(flow.body(`#${number}#`)),
  });
}

interface About {
  readonly reply: Seen;
  readonly rows: readonly Row[];
  readonly plan: Plan;
  /** Of the same call without a fault, in nano-USD. */
  readonly cost: bigint;
}

function problemOf({ flow }: Case, outcome: Outcome, about: About): string | undefined {
  const { reply, rows, plan, cost } = about;
  if (reply.status === 0) return `no end after ${hangMs} ms`;
  const [row, ...more] = rows;
  if (row === undefined || more.length > 0) return `${rows.length} records`;
  if (plan.asked !== 1) return `the vendor was asked ${plan.asked} times`;
  // The record lists attempts that failed: of one vendor at most one.
  if (row.attempts > (outcome === "same" ? 0 : 1)) return `${row.attempts} failed attempts`;
  if (row.charged !== row.cost) return `costs ${row.cost}, charged ${row.charged}`;
  const paid = BigInt(row.cost);
  const isTerminal = flow.terminal !== undefined && reply.text.includes(flow.terminal);
  if (outcome === "same") {
    if (reply.status >= 300 || reply.isCut) return "the reply is not whole";
    if (flow.terminal !== undefined && !isTerminal) return "the stream has no end";
    if (row.ending !== CallEnding.COMPLETED) return `ending ${row.ending}`;
    return paid === cost ? undefined : `charged ${paid}, not ${cost}`;
  }
  if (outcome === "failed") {
    const isStatus = flow.isJob
      ? reply.status >= 500
      : reply.status === 502 || reply.status === 504;
    if (!isStatus) return "not an error of the vendor";
    if (flow.isJob && reply.status === 500 && reply.retry !== "false")
      return "clients may send it again";
    return paid === 0n ? undefined : `charged ${paid} for nothing`;
  }
  if (outcome === "broken") {
    if (reply.status !== 200) return "not the stream that had begun";
    if (isTerminal) return "the stream looks whole";
    if (!reply.isCut && !reply.text.includes("error")) return "the stream ends without an error";
    if (row.ending === CallEnding.COMPLETED) return "recorded as completed";
    return paid > 0n ? undefined : "delivered without a charge";
  }
  const isKnown =
    reply.status < 300 || reply.status === 500 || reply.status === 502 || reply.status === 504;
  if (
    !isKnown &&
    reply.status !== 503 &&
    reply.status !== 429 &&
    reply.status < 500 &&
    reply.status >= 300
  ) {
    // A corrupted status line may be any status of the vendor's.
    return undefined;
  }
  if (reply.status === 500 && !flow.isJob) return "an internal error";
  return undefined;
}

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

/** No hold is open, the audit passes, and the balance is what was paid in without what was charged. */
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
