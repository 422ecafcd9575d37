/** Ids of traces and spans, and the W3C header that carries them. */
import { randomFillSync } from "node:crypto";

/** The identity of a span, in hexadecimal digits. */
export interface SpanContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly isSampled: boolean;
}

/** Random bytes for many ids: one system call for each id would take a microsecond. */
const pool = Buffer.alloc(8_192);
let used = pool.length;

function randomHex(bytes: number): string {
  if (used + bytes > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const hex = pool.toString("hex", used, used + bytes);
  used += bytes;
  return hex;
}

/** 32 digits. */
export const newTraceId = (): string => randomHex(16);

/** 16 digits. */
export const newSpanId = (): string => randomHex(8);

const form = /^[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(?:-|$)/;

/** Reads a `traceparent`. Undefined if it is absent or invalid: a new trace then begins. */
export function parseTraceparent(header: string | undefined): SpanContext | undefined {
  const [, traceId, spanId, flags] = (header !== undefined && form.exec(header)) || [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId) || header?.startsWith("ff")) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}
