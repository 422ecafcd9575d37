/**
 * Counters, gauges and histograms whose values are plain numbers. A call changes the numbers; prom-client, which makes
 * text of them, sees them only when somebody asks for the metrics.
 */
import type { Aggregator, Metric, Registry } from "prom-client";

/** One value of a metric. */
export interface Sample {
  readonly value: number;
  readonly labels: Readonly<Record<string, string>>;
  /** The name of its line. Default: the metric's; a histogram's lines end in `_bucket`, `_sum` and `_count`. */
  readonly metricName?: string;
}

/** A metric as it is at one moment, in the form that prom-client writes and adds up. */
export interface MetricSnapshot {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  /** How the values of several processes become one. */
  readonly aggregator: Aggregator;
  readonly values: Sample[];
}

/** What all metrics are made with. */
interface MetricOptions<Label extends string> {
  readonly registry: Registry;
  readonly name: string;
  readonly help: string;
  /** Their values must come from closed sets. Default: none, and the one series begins at 0. */
  readonly labelNames?: readonly Label[];
}

type Labels<Label extends string> = Readonly<Record<Label, string>>;

interface Labelled<Series> {
  readonly labels: Readonly<Record<string, string>>;
  readonly series: Series;
}

/** A metric whose series are found by the values of their labels. */
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
    // It has all that a registry reads; the type of prom-client's wants the methods for changing it, too.
    registry.registerMetric(this as unknown as Metric);
  }

  /** The series of these labels. Callers on the path of a call keep it: finding it takes longer than changing it. */
  labels(labels: Labels<Label>): Series {
    const key = this.#labelNames.map((name) => labels[name]).join("\n");
    return this.#known.getOrInsertComputed(key, () => ({ labels, series: this.create() })).series;
  }

  /** The metric as it is now. */
  get(): Promise<MetricSnapshot> {
    const values = [...this.#known.values()].flatMap((each) => this.samples(each));
    const { name, help, type, aggregator } = this;
    return Promise.resolve({ name, help, type, aggregator, values });
  }

  protected abstract create(): Series;
  protected abstract samples(each: Labelled<Series>): Sample[];
}

/** One number that only grows. */
export class CounterSeries {
  value = 0;

  inc(amount = 1): void {
    this.value += amount;
  }
}

/** Counts what happened since the start. */
export class Counter<Label extends string = never> extends SeriesMetric<Label, CounterSeries> {
  readonly type = "counter";
  readonly #only: CounterSeries | undefined;

  constructor(options: MetricOptions<Label>) {
    super(options);
    this.#only = onlySeries(this, options);
  }

  /** Adds to the only series, or to that of these labels. `amount` is 1 by default. */
  inc(...[labels, amount]: [Label] extends [never] ? [] : [Labels<Label>, amount?: number]): void {
    (labels === undefined ? this.#only : this.labels(labels))?.inc(amount);
  }

  protected override create(): CounterSeries {
    return new CounterSeries();
  }

  /** Series with labels are shown once they have counted something: those of a call are made together. */
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

/** Tells how much there is at the moment. */
export class Gauge<Label extends string = never> extends SeriesMetric<Label, GaugeSeries> {
  readonly type = "gauge";
  override readonly aggregator: Aggregator;
  readonly #only: GaugeSeries | undefined;
  readonly #read: (() => number) | undefined;

  /**
   * @param options.read reads the value of a gauge without labels when it is asked for. Default: it is set
   * @param options.aggregator what several processes show together: `sum` for what each has of its own, the default;
   * `max` for what each of them says of all; `first` for what only the first tells
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

  /** Takes 1 from a gauge without labels. */
  dec(): void {
    this.#only?.dec();
  }

  /** Sets the series of these labels. */
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

/** How many values fell into which bucket. */
export class HistogramSeries {
  sum = 0;
  count = 0;
  /** Values of each bucket alone; the last one has those above all bounds. */
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

/** Tells how values are distributed. */
export class Histogram<Label extends string = never> extends SeriesMetric<Label, HistogramSeries> {
  readonly type = "histogram";
  readonly #bounds: readonly number[];
  readonly #only: HistogramSeries | undefined;

  /** @param options.buckets the upper bounds of the buckets, ascending; a last one for all others is added */
  constructor(options: MetricOptions<Label> & { readonly buckets: readonly number[] }) {
    super(options);
    this.#bounds = options.buckets;
    this.#only = onlySeries(this, options);
  }

  /** Counts a value of a histogram without labels. */
  observe(value: number): void {
    this.#only?.observe(value);
  }

  protected override create(): HistogramSeries {
    return new HistogramSeries(this.#bounds);
  }

  /** As for counters. */
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

/** The series of a metric without labels. It is there from the start, so that its first value is 0. */
function onlySeries<Series>(
  metric: { labels(labels: Record<never, string>): Series },
  { labelNames = [] }: { readonly labelNames?: readonly string[] },
): Series | undefined {
  return labelNames.length === 0 ? metric.labels({}) : undefined;
}
