/** Calls as files, and what is written while one looks (R-CON-1). */
import { type MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ExportFormat } from "../../../../gen/uas/billing/v1/call_pb.ts";
import {
  type TailCallsRequestSchema,
  type TailCallsResponse,
} from "../../../../gen/uas/billing/v1/call_service_pb.ts";
import { operator } from "../../../../src/core/caller.ts";
import { tailsPerAccountMax } from "../../../../src/core/limits.ts";
import { idAt, makeCalls } from "./any-calls.ts";
import { callRow } from "./call-row.ts";
import { type LogRig, openLog } from "./log-rig.ts";

let billing: LogRig;
beforeAll(async () => void (billing = await openLog()));
afterAll(() => billing.close());

const from = Date.parse("2026-03-06T00:00Z");

describe("an export", () => {
  async function written(accountId: string, format: ExportFormat): Promise<string> {
    const decoder = new TextDecoder();
    let text = "";
    for await (const { data } of billing.callsOf().exportCalls({ accountId, format })) {
      text += decoder.decode(data);
    }
    return text;
  }

  test("an export is CSV whose texts no spreadsheet takes for a formula, or JSON lines", async () => {
    const accountId = await billing.account(10_000n);
    const record = { model: `=cmd|"x",1`, request_id: "a,b", images: 2, second_micros: 1_500_000 };
    await makeCalls(billing, accountId, [
      { startMs: from, way: "settled", cost: 25n, record },
      { startMs: from + 1, way: "refused", cost: 0n, record: { error_code: "not_found" } },
    ]);
    const lines = (await written(accountId, ExportFormat.CSV)).split("\r\n");
    expect(lines).toHaveLength(4);
    expect(lines[0]).toMatch(/^startedAt,callId,requestId,.*,cost,currency,priceVersion,/);
    expect(lines[2]).toContain(`,"a,b",`);
    expect(lines[2]).toContain(`,"'=cmd|""x"",1",`);
    expect(lines[2]).toContain(",2,1.5,0.000000025,USD,");
    const json = (await written(accountId, ExportFormat.JSON)).trim().split("\n");
    expect(json.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { errorCode: "not_found", cost: "0" },
      { model: record.model, requestId: "a,b", cost: "0.000000025", seconds: 1.5 },
    ]);
  });

  test("an export of no calls is the header line alone", async () => {
    const accountId = await billing.account();
    expect(await written(accountId, ExportFormat.UNSPECIFIED)).toMatch(/^startedAt[^\n]*\n$/);
    expect(await written(accountId, ExportFormat.JSON)).toBe("");
  });
});

describe("a live view", () => {
  /** Reads on until as many calls have come; the first message is empty. */
  async function open(request: MessageInitShape<typeof TailCallsRequestSchema>) {
    const end = new AbortController();
    const told = billing.callsOf().tailCalls(request, { signal: end.signal });
    const stream = told[Symbol.asyncIterator]();
    const next = async (): Promise<TailCallsResponse | undefined> => {
      const { done, value } = await stream.next();
      return done ? undefined : value;
    };
    expect((await next())?.calls).toEqual([]);
    return {
      next,
      async ids(count: number): Promise<string[]> {
        const ids: string[] = [];
        while (ids.length < count) ids.push(...((await next())?.calls ?? []).map((c) => c.callId));
        return ids;
      },
      async close() {
        end.abort();
        await stream.return?.();
      },
    };
  }

  const settled = { startMs: from, way: "settled", cost: 1n, record: { model: "fast-1" } } as const;

  test("a live view shows the calls of its account as they are written, by any process and however long they ran", async () => {
    const [accountId, other] = [await billing.account(10_000n), await billing.account(10_000n)];
    const view = await open({ accountId, filter: { model: "fast-1" } });
    await makeCalls(billing, other, [settled]);
    const rest = { ...settled, record: { model: "slow-2" } };
    const refused = { ...settled, way: "refused" } as const;
    const ids = await makeCalls(billing, accountId, [rest, settled, refused]);
    expect((await view.ids(2)).toSorted()).toEqual(ids.slice(1).toSorted());
    await view.close();
  });

  test("an operator's live view shows the calls of all accounts", async () => {
    const [a, b] = [await billing.account(10_000n), await billing.account(10_000n)];
    const view = await open({});
    const ids = [
      ...(await makeCalls(billing, a, [settled])),
      ...(await makeCalls(billing, b, [settled])),
    ];
    expect((await view.ids(2)).toSorted()).toEqual(ids.toSorted());
    await view.close();
  });

  test("skips calls that come too fast to read, and counts them", async () => {
    const accountId = await billing.account(10_000n);
    const view = await open({ accountId });
    const rows = Array.from({ length: 450 }, () => callRow(idAt(from), accountId));
    await billing.pool.query("select call_write($1::json)", [JSON.stringify(rows)]);
    const message = await view.next();
    expect([message?.calls.length, message?.skippedCount]).toEqual([200, 250]);
    await view.close();
  });

  test("a live view is notified of watched accounts only, and few views can watch one account", async () => {
    const accountId = await billing.account(10_000n);
    const views = [];
    for (let n = 0; n < tailsPerAccountMax; n++) views.push(await open({ accountId }));
    await expect(open({ accountId })).rejects.toMatchObject({ status: 429 });
    expect(await billing.count("call_watch", `account_id = '${accountId}'`)).toBe(1);
    for (const view of views) await view.close();
    await expect.poll(() => billing.count("call_watch", `account_id = '${accountId}'`)).toBe(0);
  });

  test("a live view sends keep-alive messages, and ends with an error where it may have missed calls", async () => {
    const accountId = await billing.account(10_000n);
    const service = billing.callsOf(operator, 1);
    const stream = service.tailCalls({ accountId })[Symbol.asyncIterator]();
    await stream.next();
    expect((await stream.next()).value).toMatchObject({ calls: [], skippedCount: 0 });
    await billing.pool.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
         where application_name = 'uas-notifications' and datname = current_database()`,
    );
    const read = async () => {
      for (;;) await stream.next();
    };
    await expect(read()).rejects.toMatchObject({ status: 503 });
  });
});
