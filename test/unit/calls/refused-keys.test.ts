import { pino } from "pino";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { CallRow } from "../../../src/billing/calls/call-row.ts";
import type { RefusedKey } from "../../../src/core/caller.ts";
import { refusedKeyRecordsMax, refusedKeyWindowMs } from "../../../src/core/limits.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { createRefusedKeys } from "../../../src/calls/refused-keys.ts";
import { createMetrics } from "../../../src/observe/metrics.ts";
import { newId } from "../../../src/core/uuid.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const asked = { requestId: "request", path: "/v1/messages" };

function key(reason: RefusedKey["reason"] = "disabled"): RefusedKey {
  return { kind: "refused", accountId: newId(), keyId: newId(), reason };
}

function createRig() {
  const rows: CallRow[] = [];
  const lines: object[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const ledger = { record: (row: CallRow) => void rows.push(row) };
  const refused = createRefusedKeys({ ledger, log, metrics: createMetrics(), clock: systemClock });
  const unrecorded = () => lines.filter((line) => "unrecorded" in line);
  return { rows, refused, unrecorded };
}

test("the log names the number of calls without a record at the end of the minute", async () => {
  const { rows, refused, unrecorded } = createRig();
  const [many, few] = [key(), key("expired")];
  const took = Array.from({ length: refusedKeyRecordsMax + 3 }, () => refused.record(many, asked));
  expect(took.filter(Boolean)).toHaveLength(refusedKeyRecordsMax);
  expect(refused.record(few, asked)).toBe(true);
  expect(unrecorded()).toEqual([]);
  vi.advanceTimersByTime(refusedKeyWindowMs);
  expect(unrecorded()).toMatchObject([{ keyId: many.keyId, unrecorded: 3 }]);
  expect(refused.record(many, asked)).toBe(true);
  expect(rows).toHaveLength(refusedKeyRecordsMax + 2);
  await refused.stop();
  expect(unrecorded()).toHaveLength(1);
  expect(vi.getTimerCount()).toBe(0);
});

test("a stopping gateway logs the calls without a record of the current minute", async () => {
  const { refused, unrecorded } = createRig();
  const one = key("deleted");
  for (let count = 0; count <= refusedKeyRecordsMax; count++) refused.record(one, asked);
  await refused.stop();
  expect(unrecorded()).toMatchObject([{ keyId: one.keyId, unrecorded: 1 }]);
});
