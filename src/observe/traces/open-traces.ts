/** Opens the traces of a process, if the environment names a collector. */
import type { Environment, TraceOptions, Traces } from "./traces.ts";

/** Opens the traces; undefined if no collector is named, or the environment turns them off. */
export async function openTraces(options: TraceOptions): Promise<Traces | undefined> {
  if (!hasCollector(options.env)) return undefined;
  const { createOtlpTraces } = await import("./otlp-traces.ts");
  return createOtlpTraces(options);
}

function hasCollector(env: Environment): boolean {
  const isOff = env["OTEL_SDK_DISABLED"]?.toLowerCase() === "true";
  if (isOff || env["OTEL_TRACES_EXPORTER"] === "none") return false;
  const { OTEL_EXPORTER_OTLP_ENDPOINT: all, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: traces } = env;
  return Boolean(all) || Boolean(traces);
}
