/**
 * Counters, gauges and histograms with plain numbers as values. Calls change the numbers; prom-client reads them
 * only when metrics are scraped.
 */
import type { Aggregator, Metric, Registry } from "prom-client";

/** One value of a metric. */
export interface Sample {
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
export class CounterSeries {
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
export class HistogramSeries {
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
