/**
 * What the gateway counts. Label values come from closed sets only (configured models and vendors,
 * routes of the contract, documented codes): a client cannot mint a series.
 */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";

/** The metrics of one process. */
export type Metrics = ReturnType<typeof createMetrics>;

const overheadBuckets = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1];
const durationBuckets = [
  0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];

/** Creates the metrics in a registry of their own. */
export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  return {
    registry,
    ...edgeMetrics(registers),
    ...callMetrics(registers),
    ...upstreamMetrics(registers),
    ...taskMetrics(registers),
    ...signInMetrics(registers),
    webhookAttempts: new Counter({
      name: "uas_webhook_attempts_total",
      help: "Attempts to deliver webhooks by outcome.",
      labelNames: ["outcome"] as const,
      registers,
    }),
    /** Adds a gauge that is read when it is asked for. */
    gauge(name: string, help: string, read: () => number): void {
      const collect = function collect(this: Gauge): void {
        this.set(read());
      };
      registry.registerMetric(new Gauge({ name, help, registers: [], collect }));
    },
  };
}

function edgeMetrics(registers: Registry[]) {
  const metrics = {
    authFailures: new Counter({
      name: "uas_auth_failures_total",
      help: "Refused credentials by true reason: missing, unknown, disabled, deleted, expired.",
      labelNames: ["reason"] as const,
      registers,
    }),
    requests: new Counter({
      name: "uas_requests_total",
      help: "Answered REST requests by route of the contract and HTTP status.",
      labelNames: ["route", "status"] as const,
      registers,
    }),
    requestsInFlight: new Gauge({
      name: "uas_requests_in_flight",
      help: "REST requests that are being answered.",
      registers,
    }),
  };
  const known = new Map<string, { inc(): void }>();
  /** Counts an answered request; see {@link CallSeries} for why series are kept. */
  const countRequest = (route: string, status: number): void => {
    const key = `${status}${route}`;
    let series = known.get(key);
    if (series === undefined) {
      series = metrics.requests.labels({ route, status: String(status) });
      known.set(key, series);
    }
    series.inc();
  };
  return { ...metrics, countRequest };
}

function callMetrics(registers: Registry[]) {
  const metrics = {
    callDuration: new Histogram({
      name: "uas_call_duration_seconds",
      help: "Inference calls from the read request to their end.",
      labelNames: ["model", "vendor", "ending"] as const,
      buckets: durationBuckets,
      registers,
    }),
    firstByte: new Histogram({
      name: "uas_first_byte_seconds",
      help: "Inference calls from the read request to the first byte of content.",
      labelNames: ["model", "vendor"] as const,
      buckets: durationBuckets,
      registers,
    }),
    overhead: new Histogram({
      name: "uas_gateway_overhead_seconds",
      help: "The gateway's own time before the vendor is asked (authorization, hold) and after its reply has begun until it is passed on.",
      buckets: overheadBuckets,
      registers,
    }),
    tokens: new Counter({
      name: "uas_tokens_total",
      help: "Tokens of charged calls.",
      labelNames: ["model", "type"] as const,
      registers,
    }),
    ...moneyMetrics(registers),
  };
  const { callDuration, firstByte, charged, vendorCost, tokens } = metrics;
  const known = new Map<string, CallSeries>();
  /** The series of a call's labels. Kept: finding one by its labels takes a microsecond each time. */
  const callSeries = (model: string, vendor: string, ending: string): CallSeries => {
    const key = `${model}\n${vendor}\n${ending}`;
    let series = known.get(key);
    if (series === undefined) {
      series = {
        duration: callDuration.labels({ model, vendor, ending }),
        firstByte: firstByte.labels({ model, vendor }),
        charged: charged.labels({ model }),
        vendorCost: vendorCost.labels({ model, vendor }),
        inputTokens: tokens.labels({ model, type: "input" }),
        outputTokens: tokens.labels({ model, type: "output" }),
      };
      known.set(key, series);
    }
    return series;
  };
  return { ...metrics, callSeries };
}

function moneyMetrics(registers: Registry[]) {
  return {
    charged: new Counter({
      name: "uas_billing_charged_usd_total",
      help: "Money charged, in USD; the ledger has the exact sum.",
      labelNames: ["model"] as const,
      registers,
    }),
    vendorCost: new Counter({
      name: "uas_billing_vendor_cost_usd_total",
      help: "Money that vendors take for calls and tasks, in USD, where the configuration says what.",
      labelNames: ["model", "vendor"] as const,
      registers,
    }),
    lowBalances: new Counter({
      name: "uas_billing_low_balance_total",
      help: "Times that an account fell below its low-balance threshold.",
      registers,
    }),
    refusedForBalance: new Counter({
      name: "uas_billing_rejected_total",
      help: "Calls refused with insufficient_balance.",
      registers,
    }),
  };
}

/** What is counted of calls with the same labels. */
interface CallSeries {
  readonly duration: { observe(seconds: number): void };
  readonly firstByte: { observe(seconds: number): void };
  readonly charged: { inc(amount: number): void };
  readonly vendorCost: { inc(amount: number): void };
  readonly inputTokens: { inc(amount: number): void };
  readonly outputTokens: { inc(amount: number): void };
}

function taskMetrics(registers: Registry[]) {
  return {
    tasks: new Gauge({
      name: "uas_tasks",
      help: "Tasks that have not ended, of all processes, by state: queued, submitting, submit_unknown, running, finalizing.",
      labelNames: ["state"] as const,
      registers,
    }),
    taskSubmits: new Counter({
      name: "uas_task_submits_total",
      help: "Submits of tasks to vendors by outcome: accepted, done, refused, later, unsent, unknown.",
      labelNames: ["vendor", "outcome"] as const,
      registers,
    }),
    tasksEnded: new Counter({
      name: "uas_tasks_ended_total",
      help: "Tasks that ended by the work of this process, by status and error code; upstream_submit_unknown is to be compared with the vendor's invoice.",
      labelNames: ["status", "error_code"] as const,
      registers,
    }),
  };
}

function signInMetrics(registers: Registry[]) {
  return {
    codesSent: new Counter({
      name: "uas_sms_sends_total",
      help: "One-time codes by what became of sending them: sent, failed, limited, capped; capped is a limit for all, so people who did nothing are refused.",
      labelNames: ["outcome"] as const,
      registers,
    }),
    codeChecks: new Counter({
      name: "uas_code_checks_total",
      help: "One-time codes that were presented, by outcome: right, wrong, expired, blocked.",
      labelNames: ["outcome"] as const,
      registers,
    }),
    signIns: new Counter({
      name: "uas_console_sign_ins_total",
      help: "Sign-ins to the console by method: code, password, link.",
      labelNames: ["method"] as const,
      registers,
    }),
  };
}

function upstreamMetrics(registers: Registry[]) {
  const metrics = {
    upstreamAttempts: new Counter({
      name: "uas_upstream_attempts_total",
      help: "Requests to vendors by outcome: ok, refused, rate_limited, failed, timeout, connect, overloaded, aborted.",
      labelNames: ["vendor", "outcome"] as const,
      registers,
    }),
    upstreamAlarms: new Counter({
      name: "uas_upstream_alarms_total",
      help: "Vendor answers that the operator must act on: credential, money, model.",
      labelNames: ["vendor", "reason"] as const,
      registers,
    }),
  };
  const known = new Map<string, { inc(): void }>();
  /** Counts a request to a vendor; see {@link CallSeries} for why series are kept. */
  const countAttempt = (vendor: string, outcome: string): void => {
    const key = `${outcome}\n${vendor}`;
    let series = known.get(key);
    if (series === undefined) {
      series = metrics.upstreamAttempts.labels({ vendor, outcome });
      known.set(key, series);
    }
    series.inc();
  };
  return { ...metrics, countAttempt };
}
