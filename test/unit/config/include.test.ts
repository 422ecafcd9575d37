import { describe, expect, it } from "vitest";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadConfig, readSource } from "../../../src/config/load.ts";
import { loadText, problemsOf, servedKinds, withFolder } from "./support.ts";

const main = `# the gateway
version: 1
include: [models.yaml, more.yaml]
vendors:
  a: { kind: demo } # inside
models:
  m: { type: TEXT, routes: [{ vendor: a, model: x }], max_output_tokens: 9, price: { input: "1", output: 1.10 } }
`;

const price = "{ input: 1234567890.123456789, output: 1 }";
const models = `# bought
models:
  n:
    type: TEXT
    routes: &routes [{ vendor: b, model: x }]
    max_output_tokens: 9
    price: ${price}
  o: { type: TEXT, routes: *routes, max_output_tokens: 9, price: { input: "2", output: "1" } }
`;
const more = "vendors:\n  b: { kind: demo }\n";
const files = { "models.yaml": models, "more.yaml": more };

describe("include", () => {
  it("vendors and models of included files are served, and warnings name their file and line", () => {
    const config = loadText(main, { files });
    expect([...config.vendors.keys()]).toEqual(["a", "b"]);
    expect([...config.models.keys()]).toEqual(["m", "n", "o"]);
    expect(config.places?.get("models.n")).toBe("models.yaml:3");
    expect(config.places?.get("models.m")).toBe("uas.yaml:7");
  });

  it("the document without its files means the same, to the last digit of a price, with its comments", () => {
    withFolder((cwd) => {
      for (const [name, text] of Object.entries({ "uas.yaml": main, ...files })) {
        writeFileSync(join(cwd, name), text);
      }
      const { content } = readSource({ env: {}, cwd });
      const options = { env: {}, cwd, kinds: servedKinds };
      const stored = { source: "revision 1", content, isStored: true };
      const merged = loadConfig({ ...options, document: stored });
      const { models: expected, vendors, document, hash } = loadConfig(options);
      expect([merged.models, merged.vendors]).toEqual([expected, vendors]);
      expect([merged.document, merged.hash]).toEqual([document, hash]);
      expect(merged.models.get("n")?.prices[0]?.price.input).toBe(1_234_567_890_123_456_789n);
      expect(content).toContain("# the gateway");
      expect(content).toContain("# inside");
    });
  });

  it("an error in an included file names it, with line and column", () => {
    const wrong = { ...files, "models.yaml": models.replace("max_output_tokens: 9\n", "max: 9\n") };
    expect(problemsOf(main, { files: wrong })).toEqual([
      expect.stringMatching(/^models\.yaml:\d+:\d+ models\.n: max_output_tokens is missing/),
      expect.stringMatching(/^models\.yaml:6:5 models\.n\.max: unknown key/),
    ]);
  });

  it("errors of both files are reported at once", () => {
    const wrong = { ...files, "more.yaml": more.replace("demo", "dmo") };
    expect(problemsOf(main.replace("kind: demo", "kind: dem"), { files: wrong })).toEqual([
      expect.stringMatching(/^uas\.yaml:5:14 vendors\.a\.kind/),
      expect.stringMatching(/^more\.yaml:2:14 vendors\.b\.kind/),
    ]);
  });

  it("a syntax error in an included file names it", () => {
    const wrong = { ...files, "more.yaml": "vendors: { b: [" };
    expect(problemsOf(main, { files: wrong })[0]).toMatch(/^more\.yaml:1:/);
  });

  it.each([
    ["a file that does not exist", {}, /^uas\.yaml:3:11 include\[0\]: the file does not exist/],
    [
      "a name that two files have",
      { ...files, "more.yaml": `${more}models:\n  m: {}\n` },
      /^more\.yaml:4:3 models\.m: another file has this name, too; keep one/,
    ],
    [
      "another section",
      { ...files, "more.yaml": `${more}limits: {}\n` },
      /^more\.yaml:3:1 limits: an included file has vendors: and models: only/,
    ],
  ])("%s is refused", (_name, given, message) => {
    expect(problemsOf(main, { files: given })).toContainEqual(expect.stringMatching(message));
  });

  it("a stored document cannot include files", () => {
    const document = { source: "revision 1", content: main, isStored: true };
    const load = () => loadConfig({ env: {}, cwd: "/", kinds: servedKinds, document });
    expect(load).toThrow("`uas apply FILE` merges them");
  });
});
