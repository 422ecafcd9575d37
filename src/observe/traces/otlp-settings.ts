/** Reads the variables of OpenTelemetry's specification. */
import { readFileSync } from "node:fs";
import { version } from "../../core/package.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** The settings of a process's traces. */
export interface OtlpSettings {
  /** The address of the collector for traces. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly isCompressed: boolean;
  /** Certificates and key for TLS. Default: those of the system, without a client certificate. */
  readonly tls: Readonly<Partial<Record<"ca" | "cert" | "key", Buffer>>>;
  /** Attributes of the process. */
  readonly resource: Readonly<Record<string, string>>;
  readonly batchSpans: number;
  readonly queueSpans: number;
  readonly delayMs: number;
}

/** @throws if a certificate file cannot be read */
export function readSettings(env: Environment, instanceId: string): OtlpSettings {
  const of = (name: string): string | undefined =>
    env[`OTEL_EXPORTER_OTLP_TRACES_${name}`] || env[`OTEL_EXPORTER_OTLP_${name}`] || undefined;
  const number = (text: string | undefined, byDefault: number): number => {
    const value = Number(text || Number.NaN);
    return Number.isInteger(value) && value > 0 ? value : byDefault;
  };
  const file = (name: string): Buffer | undefined => {
    const path = of(name);
    return path === undefined ? undefined : readFileSync(path);
  };
  const [ca, cert, key] = [file("CERTIFICATE"), file("CLIENT_CERTIFICATE"), file("CLIENT_KEY")];
  const queueSpans = number(env["OTEL_BSP_MAX_QUEUE_SIZE"], 8_192);
  return {
    url: urlOf(env),
    headers: { ...pairs(env["OTEL_EXPORTER_OTLP_HEADERS"]), ...pairs(of("HEADERS")) },
    timeoutMs: number(of("TIMEOUT"), 10_000),
    isCompressed: of("COMPRESSION") === "gzip",
    tls: { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) },
    resource: resourceOf(env, instanceId),
    batchSpans: Math.min(number(env["OTEL_BSP_MAX_EXPORT_BATCH_SIZE"], 512), queueSpans),
    queueSpans,
    delayMs: number(env["OTEL_BSP_SCHEDULE_DELAY"], 5_000),
  };
}

function urlOf(env: Environment): string {
  const own = env["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
  if (own) return own;
  return `${(env["OTEL_EXPORTER_OTLP_ENDPOINT"] ?? "").replace(/\/$/, "")}/v1/traces`;
}

function resourceOf(env: Environment, instanceId: string): Record<string, string> {
  return {
    "service.name": "uas-gateway",
    "service.version": version,
    "service.instance.id": instanceId,
    ...pairs(env["OTEL_RESOURCE_ATTRIBUTES"]),
    ...(env["OTEL_SERVICE_NAME"] && { "service.name": env["OTEL_SERVICE_NAME"] }),
  };
}

/** Reads `name=value,name=value`, whose values are percent-encoded. */
function pairs(text = ""): Record<string, string> {
  const read = text.split(",").map((pair) => {
    const at = pair.indexOf("=");
    return [pair.slice(0, at).trim(), decoded(pair.slice(at + 1).trim())] as const;
  });
  return Object.fromEntries(read.filter(([name]) => name !== ""));
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
