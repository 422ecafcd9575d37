/** The reference of metrics, from their declarations. */
import { type Metric, type Registry } from "prom-client";
import { createMetrics, type GaugeName, gauges } from "../../src/observe/metrics.ts";
import { code, table } from "./table.ts";

/** The page of all metrics of the gateway, sorted by name. */
export function metricsPage(): string {
  const metrics = createMetrics();
  for (const name of Object.keys(gauges)) metrics.gauge(name as GaugeName, () => 0);
  const rows = facts(metrics.registry).map(({ name, kind, labels, help }) => [
    code(name),
    kind,
    labels.map(code).join(", "),
    help,
  ]);
  return `# Metrics

Here you find every metric of \`/metrics\`. [Observe](../observe.md) says which to watch. Node.js's own metrics
(\`process_*\`, \`nodejs_*\`) come in addition. Generated from \`src/observe/metrics.ts\`.

${table(["metric", "type", "labels", "meaning"], rows)}`;
}

/** Properties of a metric that prom-client does not export. */
interface Declared {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
}

function facts(registry: Registry) {
  return registry
    .getMetricsAsArray()
    .map((metric) => {
      const { name, help, labelNames } = metric as unknown as Declared;
      return { name, help, labels: labelNames, kind: kindOf(metric as unknown as Metric) };
    })
    .filter(({ name }) => name.startsWith("uas_"))
    .toSorted((one, other) => one.name.localeCompare(other.name));
}

function kindOf(metric: Metric): string {
  return metric.constructor.name.toLowerCase();
}
