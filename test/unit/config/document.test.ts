/** The YAML of a configuration: names, aliases and places. */
import { expect, it } from "vitest";
import { loadText, problemsOf } from "./support.ts";

const head = "version: 1\nvendors: { v: { kind: openai-compatible, base_url: http://v.test } }\n";

/** The rest of a model after its type. */
const rest =
  "routes: [{ vendor: v, model: x }], max_output_tokens: 5, price: { input: 1, output: 2 }";

it("models keep the order of the file, also where their names look like numbers", () => {
  const models = ["b", "10", "a", "2", "constructor"];
  const yaml = models.map((name) => `  ${name}: { type: TEXT, ${rest} }\n`).join("");
  expect([...loadText(`${head}models:\n${yaml}`).models.keys()]).toEqual(models);
});

it("names of JavaScript's own objects are unknown keys like any other", () => {
  const problems = problemsOf(`${head}models: {}\n__proto__: {}\nconstructor: {}\n`);
  expect(problems).toEqual([
    expect.stringMatching(/^uas\.yaml:4:1 __proto__: unknown key/),
    expect.stringMatching(/^uas\.yaml:5:1 constructor: unknown key/),
  ]);
});

it("aliases of aliases do not multiply what is read", () => {
  const levels = Array.from({ length: 30 }, (_, level) => {
    const items = level === 0 ? "x, x" : `*l${level - 1}, *l${level - 1}`;
    return `l${level}: &l${level} [${items}]\n`;
  });
  const problems = problemsOf(`${head}models: {}\n${levels.join("")}`);
  expect(problems).toHaveLength(30);
  expect(problems[29]).toMatch(/^uas\.yaml:33:1 /);
});

it("the largest file of nothing but keys is read, and a key that is given twice is found in it", () => {
  const keys = Array.from({ length: 80_000 }, (_, index) => `a${index}: 1\n`);
  const problems = problemsOf(`${head}models: {}\n${keys.join("")}a7: 2\n`);
  expect(problems).toContain("uas.yaml:80004:1 this key is given twice; keep one");
});

it("an alias inside its own anchor is a problem, not an endless loop", () => {
  expect(problemsOf(`${head}models: &m { m: *m }\n`)).not.toEqual([]);
});

it("a problem of a shared value is reported where the value stands", () => {
  const shared = rest.replace("price: { input: 1", "price: &p { input: -1");
  const other = `type: TEXT, routes: [{ vendor: v, model: y }], max_output_tokens: 5, price: *p`;
  expect(problemsOf(`${head}models:\n  a: { type: TEXT, ${shared} }\n  b: { ${other} }\n`)).toEqual(
    [
      expect.stringMatching(/^uas\.yaml:4:\d+ models\.a\.price\.input: "-1" is /),
      expect.stringMatching(/^uas\.yaml:4:\d+ models\.b\.price\.input: "-1" is /),
    ],
  );
});

it("a known key without a value counts as not given, an unknown one is still unknown", () => {
  expect(problemsOf(`${head}models: {}\nstorage:\nsms: ~\n`)).toEqual([]);
  expect(problemsOf(`${head}models: {}\nstroage:\n`)).toEqual([
    'uas.yaml:4:1 stroage: unknown key, did you mean "storage"?',
  ]);
});
