/**
 * The gateway's metrics. Label values come from closed sets only (configured models and vendors, routes of the
 * contract, documented codes), so that no client can create a series.
 */
import { type Aggregator, collectDefaultMetrics, type Metric, Registry } from "prom-client";

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
  return {
    registry,
    ...edgeMetrics(registry),
    ...callMetrics(registry),
    ...upstreamMetrics(registry),
    ...taskMetrics(registry),
    ...signInMetrics(registry),
    ...workerMetrics(registry),
    webhookAttempts: new Counter({
      registry,
      name: "uas_webhook_attempts_total",
      help: "Attempts to deliver webhooks by outcome.",
      labelNames: ["outcome"],
    }),
    /**
     * Adds a gauge that is read at each scrape.
     *
     * @param aggregator how several workers are combined; see {@link Gauge}. Default: the sum
     */
    gauge(name: string, help: string, read: () => number, aggregator?: "sum" | "max"): void {
      void new Gauge({ registry, name, help, read, ...(aggregator && { aggregator }) });
    },
  };
}

function edgeMetrics(registry: Registry) {
  const metrics = {
    authFailures: new Counter({
      registry,
      name: "uas_auth_failures_total",
      help: "Refused credentials by true reason: missing, unknown, disabled, deleted, expired.",
      labelNames: ["reason"],
    }),
    limitRefusals: new Counter({
      registry,
      name: "uas_limit_refusals_total",
      help: "Calls refused by a limit of a key, an account, a model or the process.",
      labelNames: ["limit"],
    }),
    requests: new Counter({
      registry,
      name: "uas_requests_total",
      help: "Answered REST requests by route of the contract and HTTP status.",
      labelNames: ["route", "status"],
    }),
    requestsInFlight: new Gauge({
      registry,
      name: "uas_requests_in_flight",
      help: "REST requests that are being answered.",
    }),
  };
  const known = new SeriesTree((route: string, status: number) =>
    metrics.requests.labels({ route, status: String(status) }),
  );
  /** Counts an answered request. */
  const countRequest = (route: string, status: number): void => {
    known.get(route, status).value++;
  };
  return { ...metrics, countRequest };
}

function callMetrics(registry: Registry) {
  const metrics = {
    callDuration: new Histogram({
      registry,
      name: "uas_call_duration_seconds",
      help: "Inference calls from the read request to their end.",
      labelNames: ["model", "vendor", "ending"],
      buckets: durationBuckets,
    }),
    firstByte: new Histogram({
      registry,
      name: "uas_first_byte_seconds",
      help: "Inference calls from the read request to the first byte of content.",
      labelNames: ["model", "vendor"],
      buckets: durationBuckets,
    }),
    overhead: new Histogram({
      registry,
      name: "uas_gateway_overhead_seconds",
      help: "The gateway's own time before the vendor is asked (authorization, hold) and after its reply has begun until it is passed on.",
      buckets: overheadBuckets,
    }),
    tokens: new Counter({
      registry,
      name: "uas_tokens_total",
      help: "Tokens of charged calls.",
      labelNames: ["model", "type"],
    }),
    ...moneyMetrics(registry),
  };
  const { callDuration, firstByte, charged, vendorCost, tokens } = metrics;
  const byModel = new Map<string, SeriesTree<string, string, CallSeries>>();
  const treeOf = (model: string): SeriesTree<string, string, CallSeries> =>
    new SeriesTree((vendor, ending) => ({
      duration: callDuration.labels({ model, vendor, ending }),
      firstByte: firstByte.labels({ model, vendor }),
      charged: charged.labels({ model }),
      vendorCost: vendorCost.labels({ model, vendor }),
      inputTokens: tokens.labels({ model, type: "input" }),
      outputTokens: tokens.labels({ model, type: "output" }),
    }));
  /** The series for a call with these labels. */
  const callSeries = (model: string, vendor: string, ending: string): CallSeries =>
    byModel.getOrInsertComputed(model, treeOf).get(vendor, ending);
  return { ...metrics, callSeries };
}

function moneyMetrics(registry: Registry) {
  return {
    charged: new Counter({
      registry,
      name: "uas_billing_charged_usd_total",
      help: "Money charged, in USD; the ledger has the exact sum.",
      labelNames: ["model"],
    }),
    vendorCost: new Counter({
      registry,
      name: "uas_billing_vendor_cost_usd_total",
      help: "Money that vendors take for calls and tasks, in USD, where the configuration says what.",
      labelNames: ["model", "vendor"],
    }),
    platformLoss: new Counter({
      registry,
      name: "uas_platform_loss_nanos_total",
      help: "Nano-USD that the platform lost by calls and tasks, by reason.",
      labelNames: ["reason"],
    }),
    lowBalances: new Counter({
      registry,
      name: "uas_billing_low_balance_total",
      help: "Times that an account fell below its low-balance threshold.",
    }),
    alertEmails: new Counter({
      registry,
      name: "uas_alert_emails_total",
      help: "Attempts to send an alert by e-mail, by outcome.",
      labelNames: ["outcome"],
    }),
    refusedForBalance: new Counter({
      registry,
      name: "uas_billing_rejected_total",
      help: "Calls refused with insufficient_balance.",
    }),
  };
}

/** Counts what a vendor takes beyond the charge of a call or task: all of it where it was free. In nano-USD.
 * @param isWithheld whether a part of the reply was not delivered, because it could not be paid for. Default false */
export function countVendorLoss(
  { platformLoss }: Metrics,
  costNanos: bigint,
  vendorCostNanos: bigint,
  isWithheld = false,
): void {
  if (vendorCostNanos <= costNanos) return;
  const delivered = costNanos === 0n ? "uncharged" : "below_cost";
  const reason = isWithheld ? "withheld" : delivered;
  platformLoss.inc({ reason }, Number(vendorCostNanos - costNanos));
}

/** The series that calls with the same labels share. */
interface CallSeries {
  readonly duration: HistogramSeries;
  readonly firstByte: HistogramSeries;
  readonly charged: CounterSeries;
  readonly vendorCost: CounterSeries;
  readonly inputTokens: CounterSeries;
  readonly outputTokens: CounterSeries;
}

function taskMetrics(registry: Registry) {
  return {
    tasks: new Gauge({
      registry,
      name: "uas_tasks",
      help: "Tasks that have not ended, of all processes, by state: queued, submitting, submit_unknown, running, finalizing.",
      labelNames: ["state"],
      aggregator: "max",
    }),
    taskSubmits: new Counter({
      registry,
      name: "uas_task_submits_total",
      help: "Submits of tasks to vendors by outcome: accepted, done, refused, later, unsent, unknown.",
      labelNames: ["vendor", "outcome"],
    }),
    tasksEnded: new Counter({
      registry,
      name: "uas_tasks_ended_total",
      help: "Tasks that ended by the work of this process, by status and error code; upstream_submit_unknown is to be compared with the vendor's invoice.",
      labelNames: ["status", "error_code"],
    }),
  };
}

/** Metrics about workers, counted by the supervisor; a process without one counts itself. */
export function workerMetrics(registry: Registry) {
  return {
    workerRestarts: new Counter({
      registry,
      name: "uas_worker_restarts_total",
      help: "Workers that died and were started again.",
    }),
  };
}

function signInMetrics(registry: Registry) {
  return {
    codesSent: new Counter({
      registry,
      name: "uas_sms_sends_total",
      help: "One-time codes by what became of sending them: sent, failed, limited, capped; capped is a limit for all, so people who did nothing are refused.",
      labelNames: ["outcome"],
    }),
    codeChecks: new Counter({
      registry,
      name: "uas_code_checks_total",
      help: "One-time codes that were presented, by outcome: right, wrong, expired, blocked.",
      labelNames: ["outcome"],
    }),
    signIns: new Counter({
      registry,
      name: "uas_console_sign_ins_total",
      help: "Sign-ins to the console by method: code, password, link.",
      labelNames: ["method"],
    }),
  };
}

function upstreamMetrics(registry: Registry) {
  const metrics = {
    upstreamAttempts: new Counter({
      registry,
      name: "uas_upstream_attempts_total",
      help: "Requests to vendors by outcome: ok, refused, rate_limited, failed, timeout, connect, overloaded, aborted.",
      labelNames: ["vendor", "outcome"],
    }),
    upstreamAlarms: new Counter({
      registry,
      name: "uas_upstream_alarms_total",
      help: "Vendor answers that the operator must act on: credential, money, model, limit_ignored, usage_implausible, usage_unknown.",
      labelNames: ["vendor", "reason"],
    }),
  };
  const breakerState = new Gauge({
    registry,
    name: "uas_breaker_state",
    help: "Circuit breakers: 0 closed, 1 half-open, 2 open. A route has an empty credential, a credential an empty model.",
    labelNames: ["vendor", "model", "credential"],
    aggregator: "max",
  });
  const known = new SeriesTree((vendor: string, outcome: string) =>
    metrics.upstreamAttempts.labels({ vendor, outcome }),
  );
  /** Counts a request to a vendor. */
  const countAttempt = (vendor: string, outcome: string): void => {
    known.get(vendor, outcome).value++;
  };
  return { ...metrics, breakerState, countAttempt };
}

/**
 * Series by the values of two labels, in nested maps. A combined string key took 70 to 150 ns per call, because
 * each new string must be hashed; this takes a fifth.
 */
class SeriesTree<First, Second, Series> {
  readonly #byFirst = new Map<First, Map<Second, Series>>();
  readonly #create: (first: First, second: Second) => Series;

  constructor(create: (first: First, second: Second) => Series) {
    this.#create = create;
  }

  get(first: First, second: Second): Series {
    return this.#byFirst.get(first)?.get(second) ?? this.#add(first, second);
  }

  #add(first: First, second: Second): Series {
    const series = this.#create(first, second);
    this.#byFirst.getOrInsertComputed(first, () => new Map<Second, Series>()).set(second, series);
    return series;
  }
}

// Counters, gauges and histograms with plain numbers as values. Calls change the numbers; prom-client reads them
// only when metrics are scraped.

/** One value of a metric. */
interface Sample {
  readonly value: number;
  readonly labels: Readonly<Record<string, string>>;
  /** The name of its line. Default: the metric's name; histogram lines end in `_bucket`, `_sum` and `_count`. */
  readonly metricName?: string;
}

/** A metric at one moment, in the form that prom-client writes and aggregates. */
export interface MetricSnapshot {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  /** How values of several processes are combined. */
  readonly aggregator: Aggregator;
  readonly values: Sample[];
}

/** Common options of all metrics. */
interface MetricOptions<Label extends string> {
  readonly registry: Registry;
  readonly name: string;
  readonly help: string;
  /** Values must come from closed sets. Default: none; the single series starts at 0. */
  readonly labelNames?: readonly Label[];
}

type Labels<Label extends string> = Readonly<Record<Label, string>>;

interface Labelled<Series> {
  readonly labels: Readonly<Record<string, string>>;
  readonly series: Series;
}

/** A metric whose series are found by label values. */
abstract class SeriesMetric<Label extends string, Series> {
  readonly name: string;
  readonly help: string;
  abstract readonly type: MetricSnapshot["type"];
  readonly aggregator: Aggregator = "sum";
  readonly #labelNames: readonly Label[];
  readonly #known = new Map<string, Labelled<Series>>();

  constructor({ registry, name, help, labelNames = [] }: MetricOptions<Label>) {
    this.name = name;
    this.help = help;
    this.#labelNames = labelNames;
    // Everything a registry reads is here; prom-client's type also demands the methods that change a metric.
    registry.registerMetric(this as unknown as Metric);
  }

  /** The series with these labels. Hot callers keep it, since finding it takes longer than changing it. */
  labels(labels: Labels<Label>): Series {
    const key = this.#labelNames.map((name) => labels[name]).join("\n");
    return this.#known.getOrInsertComputed(key, () => ({ labels, series: this.create() })).series;
  }

  /** The current values. */
  get(): Promise<MetricSnapshot> {
    const values = [...this.#known.values()].flatMap((each) => this.samples(each));
    const { name, help, type, aggregator } = this;
    return Promise.resolve({ name, help, type, aggregator, values });
  }

  protected abstract create(): Series;
  protected abstract samples(each: Labelled<Series>): Sample[];
}

/** A number that only grows. */
class CounterSeries {
  value = 0;

  inc(amount = 1): void {
    this.value += amount;
  }
}

/** Counts events since the start of the process. */
export class Counter<Label extends string = never> extends SeriesMetric<Label, CounterSeries> {
  readonly type = "counter";
  readonly #only: CounterSeries | undefined;

  constructor(options: MetricOptions<Label>) {
    super(options);
    this.#only = onlySeries(this, options);
  }

  /** Adds `amount` (default 1) to the series with these labels, or to the only one. */
  inc(...[labels, amount]: [Label] extends [never] ? [] : [Labels<Label>, amount?: number]): void {
    (labels === undefined ? this.#only : this.labels(labels))?.inc(amount);
  }

  protected override create(): CounterSeries {
    return new CounterSeries();
  }

  /** Series with labels appear once they have counted something, because a call creates several together. */
  protected override samples({ labels, series }: Labelled<CounterSeries>): Sample[] {
    return series.value > 0 || series === this.#only ? [{ labels, value: series.value }] : [];
  }
}

/** One number that goes up and down. */
class GaugeSeries extends CounterSeries {
  dec(amount = 1): void {
    this.value -= amount;
  }
}

/** Shows a current value. */
export class Gauge<Label extends string = never> extends SeriesMetric<Label, GaugeSeries> {
  readonly type = "gauge";
  override readonly aggregator: Aggregator;
  readonly #only: GaugeSeries | undefined;
  readonly #read: (() => number) | undefined;

  /**
   * @param options.read reads the value at each scrape, for a gauge without labels. Default: it is set explicitly
   * @param options.aggregator how several processes are combined: `sum` (default) for values of each process, `max`
   * for a value that all report alike, `first` for one that only the first reports
   */
  constructor(
    options: MetricOptions<Label> & {
      readonly read?: () => number;
      readonly aggregator?: "sum" | "max" | "first";
    },
  ) {
    super(options);
    this.aggregator = options.aggregator ?? "sum";
    this.#read = options.read;
    this.#only = onlySeries(this, options);
  }

  /** Adds 1 to a gauge without labels. */
  inc(): void {
    this.#only?.inc();
  }

  /** Subtracts 1 from a gauge without labels. */
  dec(): void {
    this.#only?.dec();
  }

  /** Sets the series with these labels. */
  set(labels: Labels<Label>, value: number): void {
    this.labels(labels).value = value;
  }

  override get(): Promise<MetricSnapshot> {
    if (this.#read !== undefined && this.#only !== undefined) this.#only.value = this.#read();
    return super.get();
  }

  protected override create(): GaugeSeries {
    return new GaugeSeries();
  }

  protected override samples({ labels, series }: Labelled<GaugeSeries>): Sample[] {
    return [{ labels, value: series.value }];
  }
}

/** Counts values by bucket. */
class HistogramSeries {
  sum = 0;
  count = 0;
  /** Values per bucket, not cumulative; the last bucket is above all bounds. */
  readonly buckets: Float64Array;
  readonly #bounds: readonly number[];

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.buckets = new Float64Array(bounds.length + 1);
  }

  /** Counts a value, in the metric's unit. */
  observe(value: number): void {
    const bounds = this.#bounds;
    let index = 0;
    while (index < bounds.length && value > bounds[index]!) index++;
    this.buckets[index]!++;
    this.sum += value;
    this.count++;
  }
}

/** Shows the distribution of values. */
export class Histogram<Label extends string = never> extends SeriesMetric<Label, HistogramSeries> {
  readonly type = "histogram";
  readonly #bounds: readonly number[];
  readonly #only: HistogramSeries | undefined;

  /** @param options.buckets upper bounds, ascending; a bucket above the last one is added */
  constructor(options: MetricOptions<Label> & { readonly buckets: readonly number[] }) {
    super(options);
    this.#bounds = options.buckets;
    this.#only = onlySeries(this, options);
  }

  /** Counts a value in a histogram without labels. */
  observe(value: number): void {
    this.#only?.observe(value);
  }

  protected override create(): HistogramSeries {
    return new HistogramSeries(this.#bounds);
  }

  protected override samples({ labels, series }: Labelled<HistogramSeries>): Sample[] {
    if (series.count === 0 && series !== this.#only) return [];
    let below = 0;
    const buckets = [...this.#bounds, "+Inf"].map((bound, index): Sample => {
      below += series.buckets[index] ?? 0;
      const metricName = `${this.name}_bucket`;
      return { metricName, labels: { le: String(bound), ...labels }, value: below };
    });
    return [
      ...buckets,
      { metricName: `${this.name}_sum`, labels, value: series.sum },
      { metricName: `${this.name}_count`, labels, value: series.count },
    ];
  }
}

/** The single series of a metric without labels. It exists from the start, so that it is shown as 0. */
function onlySeries<Series>(
  metric: { labels(labels: Record<never, string>): Series },
  { labelNames = [] }: { readonly labelNames?: readonly string[] },
): Series | undefined {
  return labelNames.length === 0 ? metric.labels({}) : undefined;
}
