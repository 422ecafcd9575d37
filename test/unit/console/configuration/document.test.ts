/** Changes of a configuration document by forms: they lose nothing of what was written. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  changesOf,
  isOverlapping,
  moveChanges,
} from "../../../../console/src/configuration/changes.ts";
import {
  ConfigText,
  type Path,
  type Tree,
  type Value,
} from "../../../../console/src/configuration/document.ts";
import { isAt, readProblem } from "../../../../console/src/configuration/problems.ts";

const text = `# Ours
version: 1
vendors:
  # The main one.
  openai: # paid by card
    kind:   openai   # the kind
    api_key: "\${env:KEY}"
    dialects: [responses, chat-completions]

  # The spare one.
  spare: { kind: demo }
  # spare2: { kind: demo }
models:
  gpt-4.1:
    type: TEXT
    routes: [{ vendor: openai, model: gpt-4.1 }]
    max_output_tokens: 8_192
    price: { input: 0.250, output: "2.00" } # per million
limits: { key: { rpm: 10 } }
`;

const document = new ConfigText(text);

/** Changes one value, and returns the lines that were removed and added. */
function edited(path: Path, value: Value | undefined): string[] {
  const after = document.with(path, value);
  const [old, now] = [text.split("\n"), after.split("\n")];
  const gone = old.filter((line) => !now.includes(line)).map((line) => `-${line}`);
  return [...gone, ...now.filter((line) => !old.includes(line)).map((line) => `+${line}`)];
}

test("a changed value is replaced in its place, with its quotes and the comment beside it", () => {
  expect(edited(["models", "gpt-4.1", "price", "input"], "0.30")).toEqual([
    '-    price: { input: 0.250, output: "2.00" } # per million',
    '+    price: { input: 0.30, output: "2.00" } # per million',
  ]);
  expect(edited(["models", "gpt-4.1", "price", "output"], "2.5")).toEqual([
    '-    price: { input: 0.250, output: "2.00" } # per million',
    '+    price: { input: 0.250, output: "2.5" } # per million',
  ]);
  expect(edited(["vendors", "openai", "kind"], "a b")).toEqual([
    "-    kind:   openai   # the kind",
    '+    kind:   "a b"   # the kind',
  ]);
});

test("a new value changes the lines of its entry only, and keeps their comments", () => {
  const after = new ConfigText(document.with(["vendors", "openai", "timeouts", "connect"], "5s"));
  expect(after.textAt(["vendors", "openai", "timeouts", "connect"])).toBe("5s");
  for (const kept of ["# The main one.", "# paid by card", "# the kind", "# The spare one."]) {
    expect(after.text).toContain(kept);
  }
  expect(after.text.slice(after.text.indexOf("models:"))).toBe(text.slice(text.indexOf("models:")));
  expect(after.textAt(["models", "gpt-4.1", "max_output_tokens"])).toBe("8_192");
  expect(changesOf(document, after)).toEqual([
    { path: ["vendors", "openai", "timeouts"], before: "", after: "{ connect: 5s }" },
  ]);
});

test("an entry is added after the last one, and removed with the comment above it", () => {
  expect(edited(["vendors", "new"], { preset: "deepseek", api_key: "${secret:new}" })).toEqual([
    "+  new:",
    "+    preset: deepseek",
    '+    api_key: "${secret:new}"',
  ]);
  expect(edited(["vendors", "spare"], undefined)).toEqual([
    "-  # The spare one.",
    "-  spare: { kind: demo }",
  ]);
  const without = new ConfigText(document.with(["vendors", "openai"], undefined));
  expect(without.keysAt(["vendors"])).toEqual(["spare"]);
  expect(without.text).toContain("# The main one.\n\n  # The spare one.\n  spare:");
  expect(new ConfigText("version: 1\nmodels: {}\n").with(["models", "m", "type"], "TEXT")).toBe(
    "version: 1\nmodels:\n  m:\n    type: TEXT\n",
  );
});

test("a section without its last value is removed, and an entry without one stays", () => {
  expect(document.with(["limits", "key", "rpm"], undefined)).toBe(
    text.replace("limits: { key: { rpm: 10 } }\n", ""),
  );
  const after = new ConfigText(document.with(["vendors", "spare", "kind"], undefined));
  expect(after.keysAt(["vendors"])).toEqual(["openai", "spare"]);
});

test("a price becomes a list when another one is dated", () => {
  const path = ["models", "gpt-4.1", "price"];
  const after = new ConfigText(document.withPriceFrom(path, "2027-01-01"));
  expect(after.sizeAt(path)).toBe(2);
  expect(after.textAt([...path, 0, "input"])).toBe("0.250");
  expect(after.treeAt([...path, 1])).toEqual(
    new Map([
      ["from", "2027-01-01"],
      ["input", "0.250"],
      ["output", "2.00"],
    ]),
  );
});

test("changes are moved to a document that was changed meanwhile", () => {
  const own = new ConfigText(document.with(["models", "gpt-4.1", "price", "input"], "0.30"));
  const theirs = document.with(["vendors", "spare", "max_in_flight"], 5);
  const moved = new ConfigText(moveChanges(document, own, theirs));
  expect(changesOf(document, moved).map(({ path }) => path.join("."))).toEqual([
    "vendors.spare.max_in_flight",
    "models.gpt-4.1.price.input",
  ]);
  const [mine] = changesOf(document, own);
  const [other] = changesOf(document, new ConfigText(theirs));
  expect(mine && other && isOverlapping(mine, other)).toBe(false);
});

test("a problem is shown at its field, whatever the name of the model contains", () => {
  const problem = readProblem(
    '15:13 models["gpt-4.1"].routes[0].vendor: no vendor "x: y", did you mean "openai"?',
  );
  expect(problem).toMatchObject({ line: 15, column: 13 });
  expect(problem.message).toBe('no vendor "x: y", did you mean "openai"?');
  expect(isAt(problem, ["models", "gpt-4.1", "routes", 0, "vendor"])).toBe(true);
  expect(isAt(problem, ["models", "gpt-4.1"])).toBe(true);
  expect(isAt(problem, ["models", "gpt-4"])).toBe(false);
  const missing = readProblem("4:5 models.m: max_output_tokens is missing: add the maximum");
  expect(isAt(missing, ["models", "m", "max_output_tokens"])).toBe(true);
  expect(readProblem("3:1 wrong indentation, or a bracket that is not closed").path).toBe("");
});

test("an alias is reported, because a change of it would change other entries", () => {
  const shared = new ConfigText("a: &x { b: 1 }\nvendors: { v: *x, w: { y: *x }, z: {} }\n");
  expect(shared.isShared(["vendors", "w"])).toBe(true);
  expect(shared.isShared(["vendors", "z"])).toBe(false);
});

/** Forms of YAML that the other documents lack. */
const unusual = `# head
---
vendors: {
    a: { kind: demo } # in braces
  }
models:
    "m 1":
        name: >-
          folded
          text
        # two routes
        routes:
        -   vendor: a # first
            model: 'x'
        - { vendor: a, model: y } # second
        empty:
        none: ~
    # last words`;

function pathsOf(tree: Tree | undefined, path: Path = []): Path[] {
  if (typeof tree === "string" || tree === undefined) return [path];
  const entries = tree instanceof Map ? [...tree] : [...(tree as readonly Tree[]).entries()];
  return entries.flatMap(([key, value]) => pathsOf(value as Tree, [...path, key as string]));
}

test.each([
  [
    "the example",
    readFileSync(join(import.meta.dirname, "../../../../examples/operator/uas.yaml"), "utf8"),
  ],
  ["unusual YAML", unusual],
  ["lines of Windows", unusual.replaceAll("\n", "\r\n")],
])("every change changes one setting and keeps every comment: %s", (_name, whole) => {
  const before = new ConfigText(whole);
  const paths = pathsOf(before.treeAt([]));
  expect(paths.length).toBeGreaterThan(5);
  for (const path of paths) {
    const after = new ConfigText(before.with(path, "a new value"));
    expect([after.isBroken, changesOf(before, after).length]).toEqual([false, 1]);
    expect(after.textAt(path)).toBe("a new value");
    const comments = whole.match(/#.*/g) ?? [];
    expect(comments.filter((comment) => !after.text.includes(comment.trim()))).toEqual([]);
    const without = new ConfigText(before.with(path, undefined));
    expect([without.isBroken, changesOf(before, without).length]).toEqual([false, 1]);
  }
});
