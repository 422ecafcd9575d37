/**
 * Requests that say one thing to the gateway and another to the vendor, on all four prefixes
 * (R-MON-2, R-VND-3).
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Customer } from "../../support/gateway.ts";
import {
  askHostile,
  films,
  type Hostile,
  type HostileGateway,
  startHostileGateway,
} from "./hostile-gateway.ts";

let gateway: HostileGateway;
let customer: Customer;

beforeAll(async () => {
  gateway = await startHostileGateway();
  customer = await gateway.customer();
});

beforeEach(() => {
  for (const vendor of Object.values(gateway.vendors)) vendor.clear();
});

afterAll(() => gateway.close());

const ask = (asked: Hostile) => askHostile(gateway, customer, asked);

const generate = "/gemini/v1beta/models/gemini-x";
const hi = '{"contents":[{"parts":[{"text":"Hi"}]}]}';

test("a duplicate member at any depth is refused, for a vendor may read the other one", async () => {
  const twice = (name: string) => `"${name}":1,"${name}":4`;
  const rows: readonly Hostile[] = [
    {
      path: `${generate}:generateContent`,
      body: `{"contents":[],"generationConfig":{${twice("candidateCount")}}}`,
    },
    {
      path: `${generate}:generateContent`,
      body: `{"contents":[{"parts":[{"fileData":{"fileUri":"files/x","fileUri":"https://a.test"}}]}]}`,
    },
    {
      path: `${generate}:generateContent`,
      body: `{"contents":[{"parts":[{"fileData":{"fileUri":"files/x","file\\u0055ri":"https://a.test"}}]}]}`,
    },
    films.gemini(`,${twice("sampleCount")}`),
    films.dashscope(`,${twice("duration")}`),
    films.replicate(`,${twice("duration")}`),
    { path: "/fal/run/fal-ai/flux", body: `{"prompt":"x","image_size":{${twice("width")}}}` },
    { path: "/fal/run/fal-ai/flux", body: `{"prompt":"x",${twice("num_images")}}` },
  ];
  for (const row of rows) {
    const { status, text } = await ask(row);
    expect([row.body, status, text]).toEqual([
      row.body,
      400,
      expect.stringContaining("occurs twice"),
    ]);
  }
  expect(gateway.asked()).toBe(0);
});

test("/gemini: a reply cannot be requested without its usage, or in a format that cannot be metered", async () => {
  const queries = [
    "fields=candidates",
    "$fields=id",
    "%66ields=id",
    "callback=f",
    "$callback=f",
    "alt=proto",
    "alt=media",
    "$alt=sse",
    "alt=sse&alt=json",
    "alt=json&$alt=proto",
  ];
  const paths = [
    `${generate}:generateContent`,
    `${generate}:streamGenerateContent`,
    "/gemini/v1beta/interactions",
    "/gemini/v1beta/models/veo:predictLongRunning",
  ];
  for (const path of paths) {
    for (const query of queries) {
      const body = path.endsWith("interactions") ? '{"model":"gemini-x","input":"x"}' : hi;
      const { status } = await ask({ path: `${path}?${query}`, body });
      expect([path, query, status]).toEqual([path, query, 400]);
    }
  }
  expect(gateway.asked()).toBe(0);
});

test("/gemini: background and stream must be JSON booleans, although Google accepts more", async () => {
  for (const member of ['"background":"true"', '"background":1', '"stream":"true"']) {
    const body = `{"model":"gemini-x","input":"x",${member}}`;
    const { status, text } = await ask({ path: "/gemini/v1beta/interactions", body });
    expect([member, status, text]).toEqual([member, 400, expect.stringContaining("true or false")]);
  }
  expect(gateway.asked()).toBe(0);
});

test("R-VND-3: unusual spellings of file names refer to files, and an upload belongs to its caller", async () => {
  const google = "generativelanguage.googleapis.com";
  const uris = [
    `https:${google}/v1beta/files/abc`,
    `https:\\\\${google}/files/abc`,
    `https://${google}./files/abc`,
    "files%2Fabc",
    "x:files/abc",
    "\\u0001https://a.test/v1beta/files/abc",
  ];
  for (const uri of uris) {
    const body = `{"contents":[{"parts":[{"fileData":{"mimeType":"image/png","fileUri":"${uri}"}}]}]}`;
    const { status } = await ask({ path: `${generate}:generateContent`, body });
    expect([uri, status]).toEqual([uri, 404]);
  }
  for (const uri of [
    "\\u0001https://api.replicate.com/v1/files/abc",
    "h\\tttps:api.replicate.com/v1/files/abc",
  ]) {
    const { status } = await ask(films.replicate(`,"duration":5,"image":"${uri}"`));
    expect([uri, status]).toEqual([uri, 404]);
  }
  const upload = "/gemini/upload/v1beta/files?upload_id=a&upload_id=b";
  expect((await ask({ path: upload, body: "bytes" })).status).toBe(400);
  expect(gateway.asked()).toBe(0);
});
