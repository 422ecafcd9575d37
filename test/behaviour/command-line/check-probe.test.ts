import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type PlainVendor, startPlainVendor } from "../../support/plain-vendor.ts";
import { run, runJson } from "./support.ts";

/** A probe of the JSON document. */
interface Probe {
  readonly vendor: string;
  readonly verdict: string;
  readonly missingModels: readonly string[];
  readonly status: number | null;
}

const good = "good-credential-123";
const bad = "bad-credential-456";

/** Paths below a vendor's own address, its models, and the header that carries the credential. */
const kinds = [
  ["openai", "/v1", "GET /v1/models", { data: [{ id: "m" }] }, `Bearer ${good}`],
  ["openai-compatible", "/v1", "GET /v1/models", [{ id: "m" }], `Bearer ${good}`],
  ["anthropic", "", "GET /v1/models?limit=1000", { data: [{ id: "m-20260101" }] }, good],
  ["gemini", "", "GET /v1beta/models?pageSize=1000", { models: [{ name: "models/m" }] }, good],
  [
    "cohere",
    "/v2",
    "GET /v1/models?endpoint=rerank&page_size=1000",
    { models: [{ name: "m" }] },
    `Bearer ${good}`,
  ],
  ["jina", "/v1", "POST /v1/rerank", undefined, `Bearer ${good}`],
  ["replicate", "", "GET /v1/account", {}, `Bearer ${good}`],
  ["dashscope", "", "GET /api/v1/tasks/?page_no=1&page_size=1", {}, `Bearer ${good}`],
  [
    "fal",
    "",
    "GET /fal-ai/flux/requests/00000000-0000-0000-0000-000000000000/status",
    undefined,
    `Key ${good}`,
  ],
] as const;

let vendor: PlainVendor;

beforeAll(async () => {
  vendor = await startPlainVendor(({ url, headers }) => {
    const name = url.split("/")[1];
    const [, , , models] = kinds.find(([kind]) => kind === name) ?? [];
    const credential = String(
      headers.authorization ?? headers["x-api-key"] ?? headers["x-goog-api-key"] ?? "",
    );
    if (credential.includes(bad)) {
      return { status: 401, body: JSON.stringify({ error: { message: `no: ${credential}` } }) };
    }
    if (models === undefined) return { status: 422, body: "{}" };
    return { body: JSON.stringify(models) };
  });
});

afterAll(() => vendor.close());

/** A file with one vendor of a kind, and a text model at a vendor of OpenAI's API. */
function file(kind: string, path: string, model = "m"): string {
  const base = `${vendor.url}/${kind}${path}`;
  return `version: 1
vendors:
  v: { kind: ${kind}, base_url: "${base}", credentials: [{ api_key: "\${env:A}" }, { api_key: "\${env:B}" }] }
models:
  x: { type: ${kind === "cohere" || kind === "jina" ? "RERANK" : "IMAGE"}, routes: [{ vendor: v, model: ${model} }], price: { request: "1" } }
`;
}

async function probed(yaml: string, env: Readonly<Record<string, string>>) {
  const world = { files: { "uas.yaml": yaml }, env, hasAllKinds: true };
  const { json, code, opened } = await runJson(["check", "--probe"], world);
  expect(opened).toEqual([]);
  return { code, probes: (json as { probes: readonly Probe[] }).probes };
}

describe("check --probe", () => {
  it.each(kinds)(
    "check --probe asks a vendor of kind %s once for each credential, at no cost",
    async (kind, path, request, _models, header) => {
      vendor.requests.length = 0;
      const { code, probes } = await probed(file(kind, path), { A: good, B: `${good}-2` });
      expect([code, probes.map(({ verdict }) => verdict)]).toEqual([0, ["ok", "ok"]]);
      expect(probes.flatMap(({ missingModels }) => missingModels)).toEqual([]);
      const sent = vendor.requests.map(({ method, url }) => `${method} ${url}`);
      const expected = request.replace(" ", ` /${kind}`);
      expect(sent).toEqual([expected, expected]);
      const headers = vendor.requests.flatMap((each) => Object.values(each.headers));
      expect([headers.includes(header), headers.includes(`${header}-2`)]).toEqual([true, true]);
    },
  );

  it("check --probe names models that the vendor does not list", async () => {
    const { code, probes } = await probed(file("openai", "/v1", "m-nini"), { A: good, B: "other" });
    expect(code).toBe(0);
    expect(probes[0]?.missingModels).toEqual(["m-nini"]);
  });

  it("check --probe exits with 1 if one credential is refused, and shows no secret", async () => {
    const files = { "uas.yaml": file("openai", "/v1") };
    const world = { files, env: { A: good, B: bad }, hasAllKinds: true };
    const { code, out, err } = await run(["check", "--probe"], world);
    expect(code).toBe(1);
    expect(out).toMatch(/^v +A +ok +200 .*\nv +B +refused +401 +\d+ ms +no: Bearer \*+$/m);
    expect(out).toContain("failed: 1 of 2 probes");
    expect(out + err).not.toContain(bad);
  });

  it("check --probe exits with 1 if nothing listens at the address", async () => {
    const closed = await startPlainVendor(() => ({ body: "{}" }));
    await closed.close();
    const yaml = file("openai", "/v1").replace(vendor.url, closed.url);
    const { code, probes } = await probed(yaml, { A: good, B: "other" });
    expect([code, probes[0]?.verdict, probes[0]?.status]).toEqual([1, "failing", null]);
  });
});
