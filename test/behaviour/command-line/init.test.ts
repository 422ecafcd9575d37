import { describe, expect, it } from "vitest";
import { run, runJson } from "./support.ts";

const hasAllKinds = true;
const listed = {
  vendor: "openai",
  credential: "OPENAI_API_KEY",
  verdict: "ok",
  status: 200,
  latencyMs: 1,
  message: "",
  models: ["gpt-5-mini", "gpt-5"],
  missingModels: [],
} as const;

describe("uas init", () => {
  it("uas init writes a valid file with the vendors of the environment, their models and prices", async () => {
    const env = { OPENAI_API_KEY: "credential-1" };
    const { code, out, texts } = await run(["init"], { env, hasAllKinds, probed: [listed] });
    expect(code).toBe(0);
    expect(out).toMatch(/^uas\.yaml: 1 vendor, 2 models\nthen run: \.\/uas check --probe, and/);
    const text = texts.get("uas.yaml") ?? "";
    expect(text).toMatch(/^# yaml-language-server: \$schema=.*uas-schema\.json\nversion: 1\n/);
    expect(text).toContain('openai: { preset: openai, api_key: "${env:OPENAI_API_KEY}" }');
    expect(text).not.toContain("credential-1");
    const checked = await runJson(["check"], { files: { "uas.yaml": text }, env, hasAllKinds });
    expect(checked.json).toMatchObject({ ok: true, vendors: 1, models: 2, warnings: [] });
  });

  it("uas init names the keys that are not set", async () => {
    const { out, texts } = await run(["init", "--vendor", "openai,anthropic"], { hasAllKinds });
    expect(out).toContain("set OPENAI_API_KEY to the vendor's key\nset ANTHROPIC_API_KEY to");
    expect(texts.get("uas.yaml")).toContain("anthropic: { preset: anthropic, api_key:");
  });

  it("uas init asks for vendors and margin on a terminal", async () => {
    const answers = ["deepseek", "50%"];
    const { out, texts } = await run(["init"], { hasAllKinds, answers });
    expect(out).toMatch(/^uas\.yaml: 1 vendor, \d models/);
    expect(texts.get("uas.yaml")).toContain("margin 50% of the cost");
  });

  it("uas init never replaces a file without --force", async () => {
    const world = { files: { "uas.yaml": "mine" }, hasAllKinds };
    const refused = await run(["init", "--vendor", "deepseek"], world);
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining("uas.yaml exists") });
    expect(refused.texts.get("uas.yaml")).toBe("mine");
    const forced = await run(["init", "--vendor", "deepseek", "--force"], world);
    expect(forced.texts.get("uas.yaml")).toContain("deepseek");
  });

  it.each([
    [["init"], "no vendor: write --vendor openai, or set the variable of a key"],
    [["init", "--vendor", "opnai"], 'no vendor opnai, did you mean "openai"?'],
  ])("%s is refused without a vendor", async (line, message) => {
    const { code, err, created } = await run(line, { hasAllKinds });
    expect([code, created]).toEqual([1, []]);
    expect(err).toContain(message);
  });
});
