/** Expected outcome of each fault, by flow, request and position. */
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import type { Flow } from "./fault-flows.ts";
import type { FaultKind, Phase, Plan, Step } from "./vendor-proxy.ts";

/** A call and its fault. */
export interface Case {
  readonly number: number;
  readonly flow: Flow;
  readonly kind: FaultKind;
  readonly phase: Phase;
  readonly step: Step;
}

/** The customer's reply. */
export interface Seen {
  /** 0: nothing within the time. */
  readonly status: number;
  readonly text: string;
  readonly isCut: boolean;
  readonly retry: string | undefined;
}

/** The record of a call. */
export interface Row {
  readonly request_id: string;
  readonly ending: number;
  readonly cost: string;
  readonly attempts: number;
  readonly charged: string;
}

/** Outcome of a flow without a fault. */
export interface Usual {
  /** In nano-USD. */
  readonly cost: bigint;
  readonly ending: number;
  /** Status of its task; undefined without a task. */
  readonly status: string | undefined;
}

/**
 * Required outcome of a call:
 *
 * - `same`: reply, end and charge equal those of a call without a fault
 * - `again`: as `same`, by a second request to the vendor
 * - `failed`: no content arrived: an error and no charge
 * - `lost`: a task fails free of charge, and its vendor was called once
 * - `refused`: no vendor could be reached: an error and no charge
 * - `broken`: content arrived, then an error event or a break; a charge of at most the whole
 * - `either`: the last bytes may or may not have been read: as `same`, else as `broken` or `failed`
 * - `any`: the vendor's bytes are wrong in a way that the gateway may accept
 */
export type Outcome =
  | "same"
  | "again"
  | "failed"
  | "lost"
  | "refused"
  | "broken"
  | "either"
  | "any";

const kinds: readonly FaultKind[] = [
  ...(["delay", "cut", "reset", "stall", "duplicate", "corrupt"] as const),
  ...(["drip", "compress", "compress-broken"] as const),
];
const phases: readonly Phase[] = ["connect", "head", "first", "mid", "end", "after"];
const uploadKinds: readonly FaultKind[] = ["delay", "cut", "reset", "stall"];

/** The faults of a flow. */
export function casesOf(flow: Flow): Omit<Case, "number">[] {
  const { job, isLong } = flow;
  const steps = job?.steps ?? ["submit"];
  const replies = steps.flatMap((step) =>
    kinds.flatMap((kind) => phases.map((phase) => ({ flow, kind, phase, step }))),
  );
  const uploads = uploadKinds.map(
    (kind) => ({ flow, kind, phase: "upload", step: "submit" }) as const,
  );
  return [...replies, ...(isLong ? uploads : [])].filter(
    ({ kind, step }) => kind !== "stall" || !isLongWait(step, job?.isSynchronous === true),
  );
}

/**
 * Whether silence is tolerated: a minute for a file, half an hour for a vendor that completes a
 * task in one request.
 */
function isLongWait(step: Step, isSynchronous: boolean): boolean {
  return step === "file" || (step === "submit" && isSynchronous);
}

/** Returns the required outcome of the case. */
export function outcomeOf(each: Case): Outcome {
  const { flow, kind, step } = each;
  if (kind === "refuse") return "refused";
  if (kind === "none" || kind === "delay" || kind === "drip" || kind === "compress") return "same";
  if (step !== "submit") return outcomeOfPoll(each);
  const outcome = outcomeOfReply(each);
  if (outcome === "failed" && flow.job !== undefined && !flow.isJob) return "lost";
  return outcome === "failed" && flow.hasOtherRoute ? "again" : outcome;
}

/** Requests about a job are repeated. */
function outcomeOfPoll({ kind, phase, step }: Case): Outcome {
  const isChanged = kind === "duplicate" || kind === "corrupt";
  return isChanged && (phase === "mid" || phase === "end") && step === "poll" ? "any" : "same";
}

function outcomeOfReply({ flow, kind, phase }: Case): Outcome {
  const { isStream, isBinary } = flow;
  if (kind === "compress-broken") return "failed";
  if (kind === "duplicate" || kind === "corrupt") {
    if (phase === "after" || (phase === "connect" && kind === "duplicate")) return "same";
    if (phase === "connect" || phase === "head") return "failed";
    if (isBinary) return "same";
    return phase === "first" || (phase === "end" && !isStream) ? "failed" : "any";
  }
  // Cut, reset and stall.
  if (phase === "after") return kind === "reset" ? "either" : "same";
  if (!isStream || (phase !== "mid" && phase !== "end")) return "failed";
  return phase === "mid" ? "broken" : "either";
}

interface About {
  readonly reply: Seen;
  readonly rows: readonly Row[];
  readonly plan: Plan;
  readonly usual: Usual;
}

/** Returns the problem of a case's outcome; undefined if there is none. */
export function problemOf(each: Case, about: About): string | undefined {
  const outcome = outcomeOf(each);
  const { reply, rows, plan } = about;
  if (reply.status === 0) return "no end";
  const [row, ...more] = rows;
  if (row === undefined || more.length > 0) return `${rows.length} records`;
  const asked = outcome === "again" ? 2 : outcome === "refused" ? 0 : 1;
  // Changed bytes that cannot be read send the call to the other route.
  const isMaybeAgain = outcome === "any" && each.flow.hasOtherRoute === true && plan.asked === 2;
  if (plan.asked !== asked && !isMaybeAgain) return `the vendor was asked ${plan.asked} times`;
  if (plan.met === 0 && asked > 0) return "the fault did not happen";
  if (row.charged !== row.cost) return `costs ${row.cost}, charged ${row.charged}`;
  // The record lists attempts that failed: of each route at most one.
  const attempts =
    outcome === "same" ? 0 : outcome === "refused" && each.flow.hasOtherRoute ? 2 : 1;
  if (row.attempts > attempts) return `${row.attempts} failed attempts`;
  const checked = { ...about, row };
  switch (outcome) {
    case "same":
    case "again":
      return usualProblem(each, checked);
    case "failed":
    case "refused":
      return failedProblem(each, checked);
    case "lost":
      return lostProblem(checked);
    case "broken":
      return brokenProblem(each, checked);
    case "either":
      return eitherProblem(each, checked);
    case "any":
    default:
      return reply.status === 500 && !each.flow.isJob ? "an internal error" : undefined;
  }
}

interface Checked extends About {
  readonly row: Row;
}

/** The state of a task; undefined if the text is no task. */
export function statusOf(text: string): string | undefined {
  return /"status":"(completed|failed|cancelled)"/.exec(text)?.[1];
}

function isTerminal({ terminal }: Flow, { text }: Seen): boolean {
  return terminal !== undefined && text.includes(terminal);
}

function usualProblem({ flow, phase }: Case, { reply, row, usual }: Checked): string | undefined {
  if (reply.status >= 300 || reply.isCut) return "the reply is not whole";
  if (flow.terminal !== undefined && !isTerminal(flow, reply)) return "the stream has no end";
  if (flow.job !== undefined && !flow.isJob && statusOf(reply.text) !== usual.status)
    return `the task is not ${usual.status}`;
  if (row.ending !== usual.ending) return `ending ${row.ending}`;
  // A long text costs more where tokens are estimated.
  const isSame = BigInt(row.cost) === usual.cost || phase === "upload";
  return isSame ? undefined : `charged ${row.cost}, not ${usual.cost}`;
}

function failedProblem({ flow, kind }: Case, { reply, row }: Checked): string | undefined {
  const { status } = reply;
  const isRefusal = kind === "refuse" && status === 503;
  const isStatus = flow.isJob ? status >= 500 : status === 502 || status === 504 || isRefusal;
  if (!isStatus) return "not an error of the vendor";
  if (flow.isJob && status === 500 && reply.retry !== "false") return "clients may send it again";
  return row.cost === "0" ? undefined : `charged ${row.cost} for nothing`;
}

function lostProblem({ reply, row }: Checked): string | undefined {
  if (statusOf(reply.text) !== "failed") return "the task has not failed";
  if (!/"(?:upstream_submit_unknown|upstream_error)"/.test(reply.text)) return "a wrong code";
  return row.cost === "0" ? undefined : `charged ${row.cost} for nothing`;
}

function brokenProblem({ flow }: Case, { reply, row, usual }: Checked): string | undefined {
  if (reply.status !== 200) return "not the stream that had begun";
  if (isTerminal(flow, reply)) return "the stream looks whole";
  if (!reply.isCut && !reply.text.includes("error")) return "the stream ends without an error";
  if (row.ending === CallEnding.COMPLETED) return "recorded as completed";
  if (row.cost === "0") return "delivered without a charge";
  const isMore = BigInt(row.cost) > usual.cost;
  return isMore ? `charged ${row.cost}, more than ${usual.cost} for all of it` : undefined;
}

function eitherProblem(each: Case, checked: Checked): string | undefined {
  const { reply, row, usual } = checked;
  const isWhole = reply.status < 300 && row.ending === usual.ending;
  if (isWhole) return usualProblem(each, checked);
  return each.flow.isStream && reply.status === 200
    ? brokenProblem(each, checked)
    : failedProblem(each, checked);
}
