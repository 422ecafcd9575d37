/**
 * Malicious input on all four prefixes: paid work for free, and objects of other customers
 * (R-MON-2, R-VND-3).
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from "vitest";
import type { Customer } from "../../support/gateway.ts";
import {
  askHostile,
  films,
  fixedModels,
  type Hostile,
  type HostileGateway,
  lengthNames,
  makeFilm,
  startHostileGateway,
  type VendorName,
} from "./hostile-gateway.ts";

let gateway: HostileGateway;
let customer: Customer;

beforeAll(async () => {
  gateway = await startHostileGateway();
  customer = await gateway.customer();
});

beforeEach(() => {
  for (const vendor of Object.values(gateway.vendors)) {
    vendor.clear();
    vendor.answer(() => undefined);
  }
});

afterAll(() => gateway.close());

const names = Object.keys(films) as VendorName[];

const ask = (asked: Hostile) => askHostile(gateway, customer, asked);

describe.each(names)("/%s: a length that is none is 400, and named", (name) => {
  const length = lengthNames[name];
  it.each(["-5", "1e309", "-1e309", '"abc5"', '"-5"', '"٥"', '"５"', "true", "[5]", "{}", "1e12"])(
    "an invalid length is a 400 that names it: %s",
    async (value) => {
      const { status, text } = await ask(films[name](`,"${length}":${value}`));
      expect([status, text]).toEqual([
        400,
        expect.stringContaining(`${length}\\" must be a number`),
      ]);
      expect(gateway.asked()).toBe(0);
    },
  );
});

test("a figure of tokens that no model has is 400 with the range, as in every style", async () => {
  const rows: readonly Hostile[] = [
    {
      path: "/gemini/v1beta/models/gemini-x:generateContent",
      body: '{"contents":[],"generationConfig":{"maxOutputTokens":99999999999}}',
    },
    {
      path: "/gemini/v1beta/interactions",
      body: '{"model":"gemini-x","input":"x","generation_config":{"max_output_tokens":99999999999}}',
    },
    {
      path: "/dashscope/api/v1/services/aigc/text-generation/generation",
      body: '{"model":"qwen-plus","input":{"prompt":"x"},"parameters":{"max_tokens":99999999999}}',
    },
    { path: "/fal/run/fal-ai/flux", body: '{"prompt":"x","num_images":99999999999}' },
    {
      path: "/replicate/v1/models/labs/flux/predictions",
      body: '{"input":{"num_outputs":99999999999}}',
    },
  ];
  for (const row of rows) {
    const { status, text } = await ask(row);
    expect([row.path, status, text]).toEqual([
      row.path,
      400,
      expect.stringContaining("must be a number from 0 to 2147483647"),
    ]);
  }
  expect(gateway.asked()).toBe(0);
});

describe.each(names)("/%s: R-ERR-4, a model that the vendor does not have", (name) => {
  it("is 502 at a submit, and the operator is notified", async () => {
    const lines = gateway.log.length;
    gateway.vendors[name].answer(() => ({ status: 404, body: '{"detail":"Not found"}' }));
    const { status, text } = await ask(films[name](`,"${lengthNames[name]}":5`));
    expect([status, text]).toEqual([502, expect.not.stringContaining("no such")]);
    expect(gateway.log.slice(lines).join("")).toContain('"alarm":"model"');
  });
});

test("R-ERR-4: what of a model's costs nothing is 502 as well; one's own file that is gone stays 404", async () => {
  const { gemini, replicate } = gateway.vendors;
  const get = (path: string, init: RequestInit = {}) =>
    fetch(`${gateway.url}${path}`, {
      ...init,
      headers: { authorization: `Bearer ${customer.key}`, "content-type": "application/json" },
    });
  replicate.answer(() => ({ status: 404, body: '{"detail":"Not found"}' }));
  expect((await get("/replicate/v1/models/labs/film")).status).toBe(502);
  gemini.answer(() => ({ status: 404, body: '{"error":{"code":404,"message":"no model"}}' }));
  const counting = { path: "/gemini/v1beta/models/gemini-x:countTokens", body: '{"contents":[]}' };
  expect((await ask(counting)).status).toBe(502);

  replicate.answer(() => ({ status: 201, body: '{"id":"gone1","urls":{}}' }));
  expect((await get("/replicate/v1/files", { method: "POST", body: "bytes" })).status).toBe(201);
  const lines = gateway.log.length;
  replicate.answer(() => ({ status: 404, body: '{"detail":"no such file"}' }));
  const gone = await get("/replicate/v1/files/gone1");
  expect([gone.status, await gone.text()]).toEqual([404, '{"detail":"no such file"}']);
  const named = await ask(
    films.replicate(`,"duration":5,"image":"https://api.replicate.com/v1/files/gone1"`),
  );
  expect(named.status).toBe(404);
  expect(gateway.log.slice(lines).join("")).not.toContain('"alarm"');
});

test("webhook_events_filter: a word that Replicate does not know is refused", async () => {
  const filters = ['["nonsense"]', '"completed"', '["completed",1]', "{}"];
  for (const filter of filters) {
    const body = `{"webhook":"https://example.com/x","webhook_events_filter":${filter},"input":{}}`;
    const { status, text } = await ask({
      path: "/replicate/v1/models/labs/flux/predictions",
      body,
    });
    expect([filter, status, text]).toEqual([
      filter,
      400,
      expect.stringContaining("start, output, logs, completed"),
    ]);
  }
  expect(gateway.asked()).toBe(0);
});

/** In nano-USD, at 0.05 USD a second. */
const second = 50_000_000n;

describe.each(names)("/%s: R-MON-2, a tiny length that the model overlooks", (name) => {
  const tiny = `,"${lengthNames[name]}":${name === "dashscope" ? 1 : 0.001}`;
  const least = { gemini: 4n, dashscope: 5n, fal: 10n, replicate: 10n }[name];
  // Alibaba's are counted in whole seconds, and Google's are never shorter.
  const untold = name === "gemini" ? 4n : 1n;

  async function make(id: string, { file, model }: { file: string; model?: string }) {
    const vendor = gateway.vendors[name];
    makeFilm(vendor, name, { id: `${id}-${name}`, url: `${vendor.origin}/files/${file}` });
    const headers = { "x-request-id": `${id}-${name}` };
    const asked = films[name](tiny, model);
    const { status, text } = await ask({ ...asked, headers: { ...asked.headers, ...headers } });
    expect([status, text]).toEqual([200, expect.any(String)]);
    const call = await gateway.call(`${id}-${name}`);
    return { held: call.held?.amountNanos, cost: call.cost?.amountNanos };
  }

  it("is charged by the length of the generated video itself", async () => {
    expect(await make("told", { file: "film-3.mp4" })).toEqual({
      held: least * second,
      cost: 3n * second,
    });
  });

  it("is held and charged by the operator's configured length", async () => {
    const model = fixedModels[name];
    expect(await make("fixed", { file: "film-8.mp4", model })).toEqual({
      held: 8n * second,
      cost: 8n * second,
    });
    expect((await make("untold-fixed", { file: "1.png", model })).cost).toBe(8n * second);
  });

  it("counts one second where the length is unknown", async () => {
    expect((await make("untold", { file: "1.png" })).cost).toBe(untold * second);
  });
});

test("/fal/run: the same, by fal's own figures", async () => {
  const { fal } = gateway.vendors;
  const cost = async (id: string, model: string, body: object) => {
    fal.answer(() => ({ body: JSON.stringify(body) }));
    const headers = { "x-request-id": id };
    const sent = '{"prompt":"ok","duration":0.001}';
    expect((await ask({ path: `/fal/run/${model}`, body: sent, headers })).status).toBe(200);
    return (await gateway.call(id)).cost?.amountNanos;
  };
  expect(await cost("run-told", "fal-ai/veo3", { video: { duration: 7.5 } })).toBe(375_000_000n);
  expect(await cost("run-untold", "fal-ai/veo3", { video: {} })).toBe(second);
  expect(await cost("run-fixed", "fal-ai/fixed", { video: {} })).toBe(8n * second);
});

test("/replicate: a video that is requested by frames is held by them", async () => {
  gateway.vendors.replicate.answer(() => ({ status: 400, body: '{"detail":"no"}' }));
  const rows = [
    [20n, ',"duration":0.001,"num_frames":160'],
    [40n, ',"duration":1,"num_frames":"640","fps":16'],
    [10n, ',"num_frames":16,"frames_per_second":16,"fps":24'],
  ] as const;
  for (const [seconds, said] of rows) {
    const poor = await gateway.customer({ balanceNanos: seconds * second - 1n });
    const headers = { authorization: `Bearer ${poor.key}` };
    const { status, text } = await ask({ ...films.replicate(said), headers });
    const needed = `this task can cost ${Number(seconds) * 0.05} USD`;
    expect([said, status, text]).toEqual([said, 402, expect.stringContaining(needed)]);
  }
});
