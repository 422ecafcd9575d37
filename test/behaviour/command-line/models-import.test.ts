import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { type PlainVendor, startPlainVendor } from "../../support/plain-vendor.ts";
import { modelsDev } from "./price-world.ts";
import { run, runJson } from "./support.ts";

let vendor: PlainVendor;

beforeAll(async () => {
  const ids = ["gpt-5-mini", "gpt-5-mini-2025-08-07", "text-embedding-3-small", "gpt-image-1", "x"];
  const body = JSON.stringify({ data: ids.map((id) => ({ id })) });
  vendor = await startPlainVendor(() => ({ body }));
});

afterAll(() => vendor.close());

const head = (url: string): string =>
  `version: 1\nvendors:\n  o: { kind: openai, base_url: "${url}/v1", api_key: "\${env:K}" }\n`;

/** A model of the printed file. */
interface Written {
  readonly max_output_tokens?: number;
  readonly reasoning?: boolean;
  readonly price: Readonly<Record<string, string>>;
  readonly routes: readonly { readonly cost: Readonly<Record<string, string>> }[];
}

async function imported(options: readonly string[] = [], env = { K: "credential-1" }, list = {}) {
  const files = {
    "uas.yaml": `${head(vendor.url)}models: {}\n`,
    "list.json": JSON.stringify(list),
  };
  const line = ["models", "import", "o", "--margin", "20%", ...options];
  const ran = await run(line, { files, env, hasAllKinds: true });
  return { ...ran, models: (parse(ran.out) as { models: Record<string, Written> }).models };
}

describe("models import", () => {
  it("models import writes one line for each text and embedding model that the vendor lists", async () => {
    const { out, models, code } = await imported();
    expect(code).toBe(0);
    expect(Object.keys(models)).toEqual(["gpt-5-mini", "text-embedding-3-small"]);
    const lines = out.split("\n").filter((line) => line.startsWith("  "));
    expect(lines).toHaveLength(2);
    expect(out).toContain("# Left out: gpt-image-1, x");
  });

  it("models import computes prices by the cost and the margin", async () => {
    const { models } = await imported();
    const { price, routes } = models["gpt-5-mini"] ?? { price: {}, routes: [] };
    expect(routes[0]?.cost).toMatchObject({ input: "0.25", cached_input: "0.025", output: "2" });
    expect(price).toMatchObject({ input: "0.3", cached_input: "0.03", output: "2.4" });
  });

  it("what models import writes is valid below the vendors", async () => {
    const { out } = await imported();
    const files = { "uas.yaml": head(vendor.url) + out };
    const world = { files, env: { K: "credential-1" }, hasAllKinds: true };
    const { json } = await runJson(["check"], world);
    expect(json).toMatchObject({ ok: true, models: 2, warnings: [] });
  });

  it("models import takes output limits and reasoning from a list that has them", async () => {
    const list = modelsDev({ input: 1, output: 2 });
    const facts = { limit: { context: 1000, output: 500 }, reasoning: true };
    const openai = (list as { openai: { models: Record<string, object> } }).openai;
    openai.models = { x: { ...openai.models["acme-1"], id: "x", ...facts } };
    const { models } = await imported(["--from", "list.json"], { K: "credential-1" }, list);
    expect(models["x"]).toMatchObject({ max_output_tokens: 500, reasoning: true });
  });

  it("models import uses the names of the price list if the credential is not set", async () => {
    vendor.requests.length = 0;
    const { models, out } = await imported([], {} as never);
    expect(vendor.requests).toEqual([]);
    expect(Object.keys(models)).toContain("gpt-5-mini");
    expect(Object.keys(models).length).toBeGreaterThan(40);
    expect(out).toContain("The names are those of the price list");
  });

  it("models import refuses a vendor that the configuration does not have", async () => {
    const files = { "uas.yaml": `${head(vendor.url)}models: {}\n` };
    const ran = await run(["models", "import", "p", "--margin", "0%"], {
      files,
      hasAllKinds: true,
    });
    expect(ran).toMatchObject({
      code: 1,
      err: expect.stringContaining("has no vendor p (have: o)"),
    });
  });
});
