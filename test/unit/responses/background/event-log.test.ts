/**
 * The events of background responses: none is lost, repeated or out of order, however they were
 * written.
 */
import * as fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import {
  initialEvents,
  createEventLog,
  type EventLog,
  eventText,
} from "../../../../src/responses/background/event-log.ts";
import { Recorder } from "../../../../src/responses/background/runner.ts";
import { createStateJobs } from "../../../../src/responses/stored/state.ts";
import { createResponseStore } from "../../../../src/responses/stored/response-store.ts";
import { newId } from "../../../../src/core/uuid.ts";
import { newAccount, response, useDatabase } from "../stored/harness.ts";

const fixture = useDatabase();
let log: EventLog;
beforeAll(() => void (log = createEventLog(fixture.pool)));

const begun = '{"id":"r","status":"queued"}';
const deltaType = "response.output_text.delta";
const delta = (text: string): string => JSON.stringify({ type: deltaType, delta: text });

/** A response that is kept, for events need one. */
async function kept() {
  const accountId = newAccount();
  const saved = response(accountId, "a");
  const store = createResponseStore({ pool: fixture.pool });
  await store.save(saved);
  const taskId = newId();
  const sql = "update stored_response set task_id = $2 where account_id = $1";
  await fixture.pool.query(sql, [accountId, taskId]);
  return { of: { accountId, responseId: saved.responseId, taskId }, store };
}

async function read(of: Awaited<ReturnType<typeof kept>>["of"], after = -1) {
  const events = await log.read(of, after);
  return events.map(({ number, text }) => {
    const data = text.split("\n")[1]?.replace("data: ", "") ?? "";
    const event = JSON.parse(data) as Record<string, unknown>;
    expect(event["sequence_number"]).toBe(number);
    return event;
  });
}

describe("the event log", () => {
  it("the event log returns the events after any number, whatever the batches", async () => {
    const batches = fc.array(fc.array(fc.string(), { minLength: 1, maxLength: 4 }), {
      minLength: 1,
      maxLength: 6,
    });
    await fc.assert(
      fc.asyncProperty(batches, fc.nat(12), async (texts, after) => {
        const { of } = await kept();
        let last = -1;
        for (const batch of texts) {
          const events = batch.map((text) => eventText(++last, deltaType, delta(text)));
          await log.write(of, { last, events });
        }
        expect(await log.last(of)).toBe(last);
        const told = (await read(of, after)).map((event) => event["delta"]);
        expect(told).toEqual(texts.flat().slice(after + 1));
      }),
      { numRuns: 25 },
    );
  });

  it("the event log returns an event once that was written again after a lost answer", async () => {
    const { of } = await kept();
    const events = ["a", "b", "c"].map((text, at) => eventText(at, deltaType, delta(text)));
    await log.write(of, { last: 1, events: events.slice(0, 2) });
    await log.write(of, { last: 2, events });
    await log.write(of, { last: 2, events });
    expect((await read(of)).map((event) => event["delta"])).toEqual(["a", "b", "c"]);
  });

  it("the event log has no events of a deleted response, and writes none", async () => {
    const { of, store } = await kept();
    await log.write(of, initialEvents(begun));
    await store.delete(of.accountId, of.responseId);
    expect(await log.last(of)).toBe(-1);
    await log.write(of, { last: 2, events: [eventText(2, deltaType, delta("late"))] });
    expect(await log.last(of)).toBe(-1);
  });

  it("expires a day after the end of the response, which itself remains", async () => {
    const { of, store } = await kept();
    await log.write(of, initialEvents(begun));
    const jobs = createStateJobs({ pool: fixture.pool, store });
    await jobs.expire();
    expect(await log.last(of)).toBe(1);
    await fixture.pool.query(
      "update stored_response set expires_at = expires_at - interval '27 h' where account_id = $1",
      [of.accountId],
    );
    await jobs.expire();
    expect(await log.last(of)).toBe(-1);
    expect(await store.find(of.accountId, of.responseId)).toMatchObject({ kind: "here" });
  });
});

describe("the recorder", () => {
  it("the recorder continues after the last written event, and skips the events that the gateway writes itself", async () => {
    const { of } = await kept();
    await log.write(of, initialEvents(begun));
    for (const text of ["one", "two"]) {
      const recorder = new Recorder({ log, of, warn: () => {} }, await log.last(of));
      recorder.begin(begun);
      for (const type of ["response.created", "response.in_progress", "response.completed"]) {
        recorder.add(type, '{"response":{}}');
      }
      recorder.add(deltaType, delta(text));
      await recorder.close();
    }
    expect((await read(of)).map(({ type, delta: text }) => text ?? type)).toEqual([
      ...["response.created", "response.queued", "response.in_progress", "one", "two"],
    ]);
  });

  it("the recorder writes failed events again, at the latest with the end of the response", async () => {
    const { of } = await kept();
    const warned: object[] = [];
    const away = { ...log, write: () => Promise.reject(new Error("away")) };
    const recorder = new Recorder({ log: away, of, warn: (_, fields) => warned.push(fields) }, -1);
    recorder.begin(begun);
    recorder.add(deltaType, delta("kept"));
    await recorder.close();
    expect(warned).toHaveLength(1);
    for (const _ of [1, 2]) await recorder.finish(fixture.pool, '{"status":"incomplete"}');
    expect((await read(of)).map(({ type }) => type)).toEqual([
      ...["response.in_progress", "response.output_text.delta", "response.incomplete"],
    ]);
  });
});
