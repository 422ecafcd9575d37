import * as fc from "fast-check";
import { it } from "vitest";
import { demoYaml } from "../../../src/config/demo-config.ts";
import { problemsOf } from "./support.ts";

const valid =
  `${demoYaml}  far: { type: TEXT, routes: [{ vendor: far, model: m }], max_output_tokens: 5, price: &p { input: 1, output: 2 } }
  near: { type: TEXT, routes: [{ vendor: demo, model: m }], max_output_tokens: 5, price: *p }
webhooks: { allow_hosts: [a.test], ca_file: null }
storage: { kind: local }
`.replace(
    "vendors:",
    'vendors:\n  far: { kind: openai-compatible, base_url: "http://${env:HOST}", timeouts: { idle: 5s } }',
  );

const snippets = [
  "{",
  "}",
  "[",
  "]",
  ":",
  ",",
  "\n",
  "  ",
  "\t",
  '"',
  "'",
  "&p",
  "*p",
  "!x",
  "|",
  "#",
];
const more = [
  "---",
  "%YAML 1.1\n---\n",
  "<<: *p",
  "? ",
  "- ",
  "null",
  "${env:X}",
  "\u0000",
  "\ud800",
  "é",
  "1e9",
];

const mutation = fc.record({
  at: fc.nat(valid.length),
  cut: fc.oneof({ weight: 3, arbitrary: fc.nat(6) }, fc.nat(200)),
  put: fc.oneof(fc.constantFrom(...snippets, ...more), fc.string({ maxLength: 8 })),
});

it("any change of a valid file is accepted, or refused with places in words of ours", () => {
  // Every message is ours: those of zod and yaml could repeat a secret.
  const foreign = /Invalid (input|key)|is not valid here|Too (small|big)/;
  const place = /^uas\.yaml:[1-9]\d*:[1-9]\d* \S/;
  fc.assert(
    fc.property(fc.array(mutation, { minLength: 1, maxLength: 4 }), (mutations) => {
      const mutated = mutations.reduce(
        (yaml, { at, cut, put }) => yaml.slice(0, at) + put + yaml.slice(at + cut),
        valid,
      );
      const problems = problemsOf(mutated, { env: { HOST: "h.example" } });
      return problems.every(
        (problem) => place.test(problem) && !problem.includes("\n") && !foreign.test(problem),
      );
    }),
    { numRuns: 800 },
  );
});

it("the file that the test above changes is valid", () => {
  const problems = problemsOf(valid, { env: { HOST: "h.example" } });
  if (problems.length > 0) throw new Error(problems.join("\n"));
});
