import { describe, expect, it } from "vitest";
import { ConfigService } from "../../../gen/uas/config/v1/config_service_pb.ts";
import { run } from "./support.ts";

const model = `{ type: TEXT, routes: [{ vendor: a, model: x }], max_output_tokens: 9, price: { input: "1", output: "1" } }`;
const files = {
  "uas.yaml": "version: 1\ninclude: [more.yaml]\nvendors:\n  a: { kind: demo }\n",
  "more.yaml": `models:\n  m: ${model}\n`,
};

/** Runs `uas apply uas.yaml`, and returns the documents that it sends. */
async function apply(given: Readonly<Record<string, string>>) {
  const applied: string[] = [];
  const { code, err } = await run(["apply", "uas.yaml"], {
    files: given,
    routes: ({ service }) =>
      service(ConfigService, {
        getConfig: () => ({ config: { etag: "e" } }),
        checkConfig: () => ({}),
        applyConfig({ document }) {
          applied.push(document);
          return { revision: { revision: 1n } };
        },
      }),
  });
  return { code, err, applied };
}

describe("uas apply", () => {
  it("uas apply sends one document with the content of the included files", async () => {
    const { code, applied } = await apply(files);
    expect(code).toBe(0);
    const merged = `version: 1\nvendors:\n  a: { kind: demo }\nmodels:\n  m: ${model}\n`;
    expect(applied.map((document) => document.replace(/\[ (.*?) \]/g, "[$1]"))).toEqual([merged]);
  });

  it("uas apply sends a file without include as it is, byte for byte", async () => {
    const text = `# mine\nversion:   1\nvendors: {a: {kind: demo}}\nmodels:\n  m: ${model}\n`;
    expect((await apply({ "uas.yaml": text })).applied).toEqual([text]);
  });

  it("uas apply applies nothing if an included file does not exist", async () => {
    const { "uas.yaml": main } = files;
    const { code, err, applied } = await apply({ "uas.yaml": main, "models.yaml": "models: {}\n" });
    expect([code, applied]).toEqual([1, []]);
    expect(err).toContain("does not exist");
  });
});
