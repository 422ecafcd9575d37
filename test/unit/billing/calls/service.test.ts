/** Queries of the call log: lists, counts, a call. */
import { randomUUIDv7 } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { durationMs, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  CallEnding,
  CallEventKind,
  type CallFilter,
  CallFilterSchema,
  CallOutcome,
} from "../../../../gen/uas/billing/v1/call_pb.ts";
import { readCalls } from "../../../../src/billing/calls/read.ts";
import { parseFilter } from "../../../../src/billing/calls/filter.ts";
import type { StoredCallRow } from "../../../../src/billing/message.ts";
import { ErrorCode } from "../../../../src/core/errors.ts";
import { errorCodeOf } from "../../../../src/core/error-words.ts";
import { readPage } from "../../../../src/core/pagination.ts";
import { money } from "../../../../src/core/money.ts";
import { anyCall, idAt, keyIds, makeCalls } from "./any-calls.ts";
import { type LogRig, openLog } from "./log-rig.ts";

let billing: LogRig;
beforeAll(async () => void (billing = await openLog()));
afterAll(() => billing.close());

const from = Date.parse("2026-03-06T00:00Z");
const to = Date.parse("2026-03-09T00:00Z");
const moment = fc.integer({ min: from, max: to });
const anyFilter = fc
  .record({
    fromMs: fc.option(moment),
    toMs: fc.option(moment),
    model: fc.constantFrom("", "", "fast-1"),
    keyId: fc.constantFrom("", "", keyIds[1] ?? ""),
    outcome: fc.constantFrom(...Object.values(CallOutcome)),
    ending: fc.constantFrom(0, 0, CallEnding.COMPLETED, CallEnding.UPSTREAM_FAILED),
    statusMin: fc.constantFrom(0, 0, 400),
    statusMax: fc.constantFrom(0, 0, 499),
    errorCode: fc.constantFrom(0, 0, ErrorCode.UPSTREAM_ERROR),
    costMin: fc.option(fc.bigInt({ min: 0n, max: 500n })),
    costMax: fc.option(fc.bigInt({ min: 0n, max: 500n })),
  })
  .map(({ fromMs, toMs, costMin, costMax, ...filter }) =>
    create(CallFilterSchema, {
      ...filter,
      ...(fromMs !== null && { fromTime: timestampFromMs(fromMs) }),
      ...(toMs !== null && { toTime: timestampFromMs(toMs) }),
      ...(costMin !== null && { costMin: money(costMin) }),
      ...(costMax !== null && { costMax: money(costMax) }),
    }),
  );

function msOf(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

/** The same filter, said again. */
function fits(row: StoredCallRow, filter: CallFilter): boolean {
  const isFailed = ![1, 5, 10].includes(row.ending);
  const { fromTime, toTime, outcome } = filter;
  return (
    msOf(row.id) >= (fromTime ? timestampMs(fromTime) : 0) &&
    msOf(row.id) < (toTime ? timestampMs(toTime) : Infinity) &&
    (outcome === CallOutcome.UNSPECIFIED || isFailed === (outcome === CallOutcome.FAILED)) &&
    ["", row.model].includes(filter.model) &&
    ["", row.key_id].includes(filter.keyId) &&
    [0, errorCodeOf(row.error_code, row.status)].includes(filter.errorCode) &&
    (filter.ending === 0 || row.ending === filter.ending) &&
    row.status >= filter.statusMin &&
    row.status <= (filter.statusMax || 999) &&
    BigInt(row.cost) >= (filter.costMin?.amountNanos ?? 0n) &&
    BigInt(row.cost) <= (filter.costMax?.amountNanos ?? 1_000n)
  );
}

async function all(accountId: string): Promise<StoredCallRow[]> {
  const text = "select * from call where account_id = $1 order by id desc";
  return (await billing.pool.query<StoredCallRow>(text, [accountId])).rows;
}

describe("the call log", () => {
  test("any filter finds the matching calls, page by page, however small the scanned window is", async () => {
    const accountId = await billing.account(100_000n);
    const calls = fc.sample(anyCall(from, to), 120);
    await makeCalls(billing, accountId, calls);
    const rows = await all(accountId);
    await fc.assert(
      fc.asyncProperty(
        anyFilter,
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 1, max: 150 }),
        async (filter, pageSize, windowRows) => {
          const query = parseFilter(accountId, filter);
          const found: string[] = [];
          let pageToken = "";
          do {
            const asked = readPage({ pageSize, pageToken });
            const page = await readCalls(billing.pool, query, asked, windowRows);
            expect(page.calls.length).toBeLessThanOrEqual(pageSize);
            found.push(...page.calls.map(({ id }) => id));
            pageToken = page.nextPageToken;
          } while (pageToken !== "");
          const expected = rows.filter((row) => fits(row, filter)).map(({ id }) => id);
          expect(found).toEqual(expected);
        },
      ),
      { numRuns: 60 },
    );
  });

  test("a histogram counts what a list shows, bar by bar", async () => {
    const accountId = await billing.account(100_000n);
    await makeCalls(billing, accountId, fc.sample(anyCall(from, to), 100));
    const rows = await all(accountId);
    await fc.assert(
      fc.asyncProperty(
        anyFilter,
        moment,
        fc.integer({ min: 0, max: 250 }),
        async (any, a, bars) => {
          const toTime = any.toTime ?? timestampFromMs(to);
          const startMs = Math.min(a, timestampMs(toTime) - 1);
          const filter = { ...any, fromTime: timestampFromMs(startMs), toTime };
          const answer = await billing
            .callsOf()
            .getCallHistogram({ accountId, filter, barLimit: bars });
          const barMs = answer.barDuration ? durationMs(answer.barDuration) : 0;
          const expected = new Map<number, [succeeded: bigint, failed: bigint]>();
          for (const row of rows.filter((each) => fits(each, filter))) {
            const bar = Math.floor(msOf(row.id) / barMs) * barMs;
            const [succeeded, failed] = expected.get(bar) ?? [0n, 0n];
            const isFailed = ![1, 5, 10].includes(row.ending);
            expected.set(bar, isFailed ? [succeeded, failed + 1n] : [succeeded + 1n, failed]);
          }
          const told = answer.bars.map(({ time, succeededCount, failedCount }) => [
            time && timestampMs(time),
            [succeededCount, failedCount],
          ]);
          expect(told).toEqual([...expected].toSorted(([x], [y]) => x - y));
          expect(Math.ceil((timestampMs(toTime) - startMs) / barMs)).toBeLessThanOrEqual(
            bars || 60,
          );
          expect(answer.countedFromTime).toEqual(filter.fromTime);
        },
      ),
      { numRuns: 60 },
    );
  });

  test("a call is shown with its receipt and its events, in order", async () => {
    const accountId = await billing.account(10_000n);
    const id = idAt(from);
    await billing.send({ accountId, holds: [{ id, amountNanos: 10n }] });
    await billing.send({ accountId, extends: [{ id, amountNanos: 30n }] });
    const start = {
      start_time: new Date(from).toISOString(),
      request_id: `of ${id}`,
      charged: true,
    };
    await billing.send({ accountId, settles: [[id, 25n, { ...start, held: "10" }]] });
    const { call, receipt, events } = await billing.callsOf().getCall({
      call: { case: "requestId", value: `of ${id}` },
    });
    expect([call?.callId, receipt?.amount?.amountNanos]).toEqual([id, 25n]);
    const { STARTED, HELD, FIRST_CONTENT, ENDED, HOLD_GROWN, CHARGED } = CallEventKind;
    expect(events.map(({ kind }) => kind)).toEqual([
      STARTED,
      HELD,
      FIRST_CONTENT,
      ENDED,
      HOLD_GROWN,
      CHARGED,
    ]);
    expect(events.slice(0, 4).map(({ time }) => time && timestampMs(time) - from)).toEqual([
      0, 0, 3, 12,
    ]);
    expect(events.map(({ held }) => held?.amountNanos)).toEqual([
      undefined,
      10n,
      undefined,
      undefined,
      30n,
      undefined,
    ]);
  });

  test("R-AUTH-6: a session sees its own account only", async () => {
    const accountId = await billing.account(10_000n);
    const [id = ""] = await makeCalls(billing, accountId, [
      { startMs: from, way: "settled", cost: 1n, record: {} },
    ]);
    const own = billing.callsOf({ kind: "session", accountId });
    expect(
      (await own.getCall({ accountId, call: { case: "callId", value: id } })).call?.callId,
    ).toBe(id);
    const other = billing.callsOf({ kind: "session", accountId: randomUUIDv7() });
    const filter = { fromTime: timestampFromMs(from) };
    const tail = async () => {
      for await (const _ of other.tailCalls({ accountId })) throw new Error("told");
    };
    const file = async () => {
      for await (const _ of other.exportCalls({ accountId })) throw new Error("written");
    };
    await expect(
      other.getCall({ accountId, call: { case: "callId", value: id } }),
    ).rejects.toMatchObject({ status: 404 });
    await expect(other.getCallHistogram({ accountId, filter })).rejects.toMatchObject({
      status: 404,
    });
    await expect(tail()).rejects.toMatchObject({ status: 404 });
    await expect(file()).rejects.toMatchObject({ status: 404 });
    await expect(other.getCallHistogram({ filter })).rejects.toMatchObject({ param: "account_id" });
  });
});
