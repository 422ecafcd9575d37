/** The contract of every task adapter, over vendors as strict as the real ones. */
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { JsonObject } from "@bufbuild/protobuf";
import { HttpFailure, isUnsent } from "../../../../src/http/failure.ts";
import {
  type Submitted,
  type TaskUpdate,
  type TaskOutcome,
  TaskRefused,
  type VendorTasks,
  VendorReplyError,
} from "../../../../src/provider/task.ts";
import type { Vendor } from "../../../../src/provider/vendor.ts";
import { adapters, madeVendor, modelOf, submission, tasksOf } from "./adapters.ts";
import type { Mishap, SimulatedVendor } from "./simulated.ts";

const signal = new AbortController().signal;

/** Returns the thrown error. */
async function failure(work: Promise<unknown>): Promise<unknown> {
  try {
    await work;
  } catch (error) {
    return error;
  }
  throw new Error("it did not fail");
}

async function finished(tasks: VendorTasks, submitted: Submitted): Promise<TaskOutcome> {
  if ("done" in submitted) return submitted.done;
  const seen: TaskUpdate["status"][] = [];
  for (let look = 0; look < 5; look += 1) {
    const news = await tasks.poll?.(submitted.vendorTaskId, signal);
    seen.push(news?.status ?? "failed");
    if (news?.status === "completed") return news.outcome;
  }
  throw new Error(`it does not end: ${seen.join()}`);
}

describe.each(adapters)("$kind, tasks of type $type", (adapter) => {
  const { kind, type, least, most, says, isSynchronous } = adapter;
  let sim: SimulatedVendor;
  let vendor: Vendor;
  let tasks: VendorTasks;

  beforeAll(async () => {
    sim = await adapter.start();
    vendor = madeVendor(kind, sim.origin + adapter.basePath, adapter.secret);
    tasks = tasksOf(vendor);
  });
  afterAll(async () => {
    await vendor?.close();
    await sim?.close();
  });

  const submit = (params = least): Promise<Submitted> =>
    tasks.submit(submission(adapter, { params }));
  const submitAfter = (mishap: Mishap): Promise<unknown> => {
    sim.next(mishap);
    return failure(submit());
  };

  const compiled = (): ValidateFunction => {
    const route = { vendor: "acme", model: adapter.model };
    const ajv = new Ajv2020({ strict: true });
    ajv.addFormat("uri", { type: "string", validate: (text: string) => URL.canParse(text) });
    return ajv.compile(tasks.paramsSchema?.(modelOf(type), route) ?? {});
  };

  it.each([
    ["the fewest", least],
    ["one of all", most],
  ])(
    "R-TSK-2: the schema takes %s parameters, and the vendor what is made of them",
    async (_name, params) => {
      const validate = compiled();
      expect(validate(params), JSON.stringify(validate.errors)).toBe(true);
      expect(validate({ ...params, unknown: 1 })).toBe(false);
      const outcome = await finished(tasks, await submit(params));
      expect(outcome.files.length).toBeGreaterThan(0);
      for (const { url, bytes, contentType } of outcome.files) {
        expect(contentType).toMatch(/^(image|audio|video)\//);
        expect([url, bytes].filter((each) => each !== undefined)).toHaveLength(1);
      }
    },
  );

  it("R-TSK-2: `extra` cannot set what a known parameter, or the adapter, sets", () => {
    const validate = compiled();
    for (const name of adapter.closed) {
      expect(validate({ ...least, extra: { [name]: 1 } }), name).toBe(false);
    }
  });

  it("R-TSK-6: charges no more than was set aside", async () => {
    const bound = tasks.units(most, modelOf(type));
    const { units = {}, usage } = await finished(tasks, await submit(most));
    expect(units.images ?? 0).toBeLessThanOrEqual(bound.images ?? 0);
    expect(units.seconds ?? 0).toBeLessThanOrEqual(bound.seconds ?? 0);
    if (usage === undefined) return;
    expect(usage.inputTokens).toBeLessThanOrEqual(bound.inputTokens ?? 0);
    expect(usage.outputTokens).toBeLessThanOrEqual(bound.outputTokens ?? 0);
  });

  it("R-TSK-7: is blind, and asks one time only where the answer is lost", async () => {
    expect(tasks.resubmit).toBe("blind");
    expect("find" in tasks).toBe(false);
    const before = { asked: sim.arrived.length, begun: sim.begun() };
    const lost = await submitAfter("lose");
    expect(lost).toBeInstanceOf(HttpFailure);
    expect((lost as HttpFailure).kind).toBe("reset");
    expect(isUnsent(lost as HttpFailure)).toBe(false);
    expect(sim.arrived.length - before.asked).toBe(1);
    expect(sim.begun() - before.begun).toBe(1);
    // The vendor does not know a repetition: to ask again would buy a second one.
    await submit();
    expect(sim.begun() - before.begun).toBe(2);
  });

  it("R-TSK-7: reports that nothing was sent if no connection was made", async () => {
    const nobody = madeVendor(kind, "http://127.0.0.1:1", adapter.secret);
    const unsent = await failure(tasksOf(nobody).submit(submission(adapter)));
    await nobody.close();
    expect(unsent).toBeInstanceOf(HttpFailure);
    expect(isUnsent(unsent as HttpFailure)).toBe(true);
  });

  it("R-TSK-7: leaves open what runs after a timeout", async () => {
    const given = new AbortController();
    given.abort();
    const task = submission(adapter, { signal: given.signal });
    const aborted = await failure(tasks.submit(task));
    expect(aborted).toBeInstanceOf(HttpFailure);
    expect(aborted).toMatchObject({ kind: "aborted" });
  });

  it("R-ERR-3: the operator's key, money and model name are the operator's", async () => {
    const other = madeVendor(kind, sim.origin + adapter.basePath, "sk-some-other-key");
    const key = await failure(tasksOf(other).submit(submission(adapter)));
    await other.close();
    const passing = { code: "upstream_error", isTemporary: true };
    expect(key).toMatchObject({ ...passing, fault: "credential" });
    expect(await submitAfter(says.money)).toMatchObject({ ...passing, fault: "money" });
    const model = await failure(tasks.submit(submission(adapter, { model: "acme/none" })));
    expect(model).toMatchObject({ ...passing, fault: "model" });
    for (const error of [key, model] as Error[]) {
      expect(error.message).not.toMatch(/key|credential|sk-|exist|found/i);
    }
  });

  it("R-TSK-10: parameters that the vendor refuses are reported in its words", async () => {
    const invalid = await submitAfter(says.invalid);
    expect(invalid).toBeInstanceOf(TaskRefused);
    expect(invalid).toMatchObject({ code: "invalid_parameters", isTemporary: false });
    const { body } = says.invalid as { body: JsonObject };
    const said =
      (body["error"] as JsonObject | undefined)?.["message"] ?? body["detail"] ?? body["message"];
    expect((invalid as Error).message).toContain(said);
  });

  it.skipIf(adapter.forbidden === undefined)("R-TSK-10: content that it refuses", async () => {
    const refused = await failure(submit(adapter.forbidden));
    expect(refused).toBeInstanceOf(TaskRefused);
    expect(refused).toMatchObject({ code: "content_rejected", isTemporary: false });
  });

  it("R-TSK-10: a vendor without room can be asked later", async () => {
    const busy = { code: "upstream_error", isTemporary: true, fault: undefined };
    expect(await submitAfter(says.busy)).toMatchObject({ ...busy, retryAfterSeconds: 7 });
    expect(await submitAfter(says.full)).toMatchObject(busy);
  });

  it("R-TSK-7: failures that leave it open whether it runs are reported as such", async () => {
    const broken = await submitAfter(says.broken);
    if (isSynchronous) expect(broken).toMatchObject({ code: "upstream_error", isTemporary: false });
    else expect(broken).toBeInstanceOf(VendorReplyError);
    const html = { type: "text/html", body: "<html>Bad gateway</html>" };
    expect(await submitAfter({ ...html, status: 502 })).toBeInstanceOf(VendorReplyError);
    expect(await submitAfter({ ...html, status: 503 })).toBeInstanceOf(VendorReplyError);
    // One that has answered and is done: nothing more will come.
    const odd = await submitAfter({ ...html, status: 200 });
    expect(odd).toBeInstanceOf(isSynchronous ? TaskRefused : VendorReplyError);
    expect(odd).not.toMatchObject({ isTemporary: true });
  });

  it.skipIf(isSynchronous)("a bad look at a task says nothing about it", async () => {
    const submitted = await submit();
    const id = "vendorTaskId" in submitted ? (submitted.vendorTaskId ?? "") : "";
    const lookAfter = (mishap: Mishap): Promise<unknown> => {
      sim.next(mishap);
      return failure(Promise.resolve(tasks.poll?.(id, signal)));
    };
    expect(await lookAfter("lose")).toBeInstanceOf(HttpFailure);
    for (const status of [200, 404, 500]) {
      const trouble = await lookAfter({ status, body: "<html>", type: "text/html" });
      expect(trouble).toBeInstanceOf(VendorReplyError);
      expect(trouble).toMatchObject({ status, fault: undefined });
    }
    expect(await lookAfter({ status: 401, body: {} })).toMatchObject({ fault: "credential" });
    expect(await lookAfter({ status: 402, body: {} })).toMatchObject({ fault: "money" });
    expect(await finished(tasks, submitted)).toBeDefined();
  });

  it("can cancel if it declares it", () => {
    expect(tasks.cancel !== undefined).toBe(tasks.canCancel);
    expect(tasks.poll === undefined).toBe(kind.startsWith("openai"));
  });
});
