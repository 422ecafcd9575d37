/**
 * Traces of calls. Without a collector there are none: no span is created, and no package of
 * OpenTelemetry is loaded.
 */

import type { Logger } from "pino";
import type { Metrics } from "../metrics.ts";

/** Attributes of a span or event. Undefined values are left out. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** The kind of a span, as in OpenTelemetry. */
export type SpanRole = "server" | "client" | "producer" | "consumer";

/** A sampled span that has begun. */
export interface TraceSpan {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** The span as a W3C `traceparent` header, for other processes. */
  readonly traceparent: string;
  /** Adds attributes. */
  set(attributes: SpanAttributes): void;
  /** Adds an event that happened now. */
  event(name: string, attributes: SpanAttributes): void;
  /** Begins a span for a part of the work. */
  child(name: string, role: SpanRole, attributes: SpanAttributes): TraceSpan;
  /** Ends the span. @param failure marks it as failed, with this description */
  end(failure?: string): void;
}

/** Facts of a span without a local parent. */
export interface SpanStart {
  readonly role: SpanRole;
  readonly attributes: SpanAttributes;
  /** `traceparent` of the caller, whose trace continues. Default: a new trace. */
  readonly traceparent?: string | undefined;
  /** Default: now. */
  readonly startTime?: Date | undefined;
  /** `traceparent` of the work that caused this one, in a trace of its own. Default: none. */
  readonly causedBy?: string | undefined;
}

/** The traces of a process. */
export interface Traces {
  /** Begins a span; undefined if its trace is not sampled. */
  start(name: string, start: SpanStart): TraceSpan | undefined;
  /** Sends what is left, within a time limit. Never rejects. */
  close(): Promise<void>;
}

/** Variables of the environment. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Options of the traces of a process. */
export interface TraceOptions {
  /** The variables of OpenTelemetry's specification. */
  readonly env: Environment;
  /** Identifies this process. */
  readonly instanceId: string;
  readonly metrics: Pick<Metrics, "spansDropped">;
  readonly log: Logger;
}
