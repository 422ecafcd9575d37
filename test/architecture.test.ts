import { globSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "..");

const files = globSync(["src/**/*.{ts,tsx}", "console/**/*.{ts,tsx}"], { cwd: root }).toSorted();

const lower = ["gen", "core", "config", "observe"];
const room = [...lower, "db"];
/** Imports of a room that makes calls: routes, prices and limits. */
const calling = [
  ...room,
  "billing",
  "provider",
  "routing",
  "limits",
  "tokens",
  "wire",
  "dialect",
  "http",
];

/**
 * Allowed imports of every part of src, besides itself and the packages. Types count as imports.
 */
const arrows: Readonly<Record<string, readonly string[] | "everything">> = {
  // The wiring: it knows every room, and no room knows it.
  main: "everything",
  app: "everything",
  core: ["gen"],
  // Descriptors of the contract: what they announce, and how two of them differ.
  contract: ["gen"],
  // The valid content of uas.yaml depends on the kinds of vendors; app/ passes them in.
  config: ["gen", "core"],
  observe: ["core"],
  // Of the rooms only */entity.ts; checked on its own below.
  db: [
    "core",
    "account",
    "key",
    "billing",
    "calls",
    "routing",
    "limits",
    "responses/stored",
    "native",
    "result",
    "task",
    "webhook",
    "alert",
    "operator",
  ],
  wire: ["core"],
  dialect: ["gen", "core", "wire"],
  http: ["core", "config"],
  provider: ["gen", "core", "config", "dialect", "wire", "http"],
  account: [...room, "http"],
  key: [...room, "account"],
  billing: room,
  limits: room,
  routing: [...room, "provider", "limits", "dialect", "wire", "http"],
  // Of routing only what a planned route is.
  tokens: ["gen", "core", "routing", "dialect", "wire"],
  // State that calls store in the database for later calls.
  "responses/stored": [...room, "provider", "routing", "dialect", "wire", "http"],
  calls: [...calling, "responses/stored"],
  // Responses that are generated in the background: calls, as tasks.
  responses: [...calling, "responses/stored", "calls"],
  // A vendor is tested by a real call.
  operator: [...room, "key", "billing", "calls", "routing", "provider"],
  webhook: [...room, "http"],
  // Alerts of the ledger, as webhooks and e-mails.
  alert: [...room, "webhook"],
  result: [...room, "http"],
  task: [...calling, "calls", "responses", "responses/stored", "result", "webhook"],
  // One handler for all vendors' own interfaces: calls belong to calls, jobs are tasks.
  native: [...calling, "calls", "task", "webhook"],
  // app/ passes in the parts of a room that an edge needs.
  edge: [...lower, "contract", "dialect", "wire"],
  // Pages for browsers: they know the contract, and of the program that serves them only the
  // shared tables below.
  console: ["gen"],
  // It reads the settings and shows errors and money; everything else it gets from app/.
  cli: [...lower, "contract", "app"],
};

/** Tables of words and units for both the gateway and the console. */
const sharedTables = ["kinds", "presets", "price-units"].map((name) => `src/config/${name}.ts`);

interface Edge {
  readonly from: string;
  readonly to: string;
}

const edges = files.flatMap(importsOf);

/** Every file of the project that a file imports, as paths from the root. */
function importsOf(file: string): Edge[] {
  const text = readFileSync(join(root, file), "utf8");
  const specifiers = [
    ...text.matchAll(/^\s*(?:import|export)\s[^"';]*?from\s+"(\.[^"]+)"/gm),
    ...text.matchAll(/^\s*import\s+"(\.[^"]+)"/gm),
    ...text.matchAll(/\bimport\(\s*"(\.[^"]+)"/g),
  ];
  return specifiers.map(([, path = ""]) => ({ from: file, to: join(dirname(file), path) }));
}

/**
 * `src/db/database.ts` is of `db`, `gen/…` of `gen`. Stored responses are a separate part: calls
 * use them, and background responses use calls.
 */
function partOf(file: string): string {
  if (file.startsWith("src/responses/stored/")) return "responses/stored";
  const [top = "", next = ""] = file.split("/");
  return top === "src" ? basename(next, ".ts") : top;
}

function mayImport({ from, to }: Edge): boolean {
  const part = partOf(from);
  const allowed = arrows[part];
  if (basename(from) === "entity.ts")
    return dirname(to) === dirname(from) && to.endsWith("entity.ts");
  return (
    part === partOf(to) ||
    to === "package.json" ||
    (part === "console" && sharedTables.includes(to)) ||
    allowed === "everything" ||
    (allowed?.includes(partOf(to)) ?? false)
  );
}

function write({ from, to }: Edge): string {
  return `${from} -> ${to}`;
}

test("every part of src has its arrows written down", () => {
  expect(files.map(partOf).filter((part) => !(part in arrows))).toEqual([]);
});

test("imports follow the arrows of the architecture", () => {
  expect(edges.filter((edge) => !mayImport(edge)).map(write)).toEqual([]);
});

test("the database knows of the rooms their tables only", () => {
  const own = ["db", "core"];
  const outward = edges.filter(
    ({ from, to }) => partOf(from) === "db" && !own.includes(partOf(to)),
  );
  expect(outward.filter(({ to }) => basename(to) !== "entity.ts").map(write)).toEqual([]);
});

test("tables know nothing of src but tables beside them", () => {
  const tables = edges.filter(({ from }) => basename(from) === "entity.ts");
  expect(tables.filter((edge) => !mayImport(edge)).map(write)).toEqual([]);
});

test("the arrows make no circle, so that no part knows who uses it", () => {
  // The tables of a room are below the database, the rest of it above.
  const floor = (file: string) => (basename(file) === "entity.ts" ? "entity" : partOf(file));
  const below = new Map<string, Set<string>>();
  for (const { from, to } of edges) {
    if (floor(from) === floor(to)) continue;
    below.set(floor(from), (below.get(floor(from)) ?? new Set()).add(floor(to)));
  }
  expect([...below.keys()].filter((part) => reaches(below, part))).toEqual([]);
});

test("no file imports itself through others, not even by types", () => {
  const imported = new Map<string, Set<string>>();
  for (const { from, to } of edges) {
    imported.set(from, (imported.get(from) ?? new Set()).add(to));
  }
  expect(files.filter((file) => reaches(imported, file))).toEqual([]);
});

/** Whether a part or a file reaches itself. */
function reaches(below: ReadonlyMap<string, ReadonlySet<string>>, start: string): boolean {
  const seen = new Set<string>();
  const open = [...(below.get(start) ?? [])];
  for (let part = open.pop(); part !== undefined; part = open.pop()) {
    if (part === start) return true;
    if (seen.has(part)) continue;
    seen.add(part);
    open.push(...(below.get(part) ?? []));
  }
  return false;
}

test("an index.ts is a registry, not a place to hide in", () => {
  const found = files.filter((file) => basename(file) === "index.ts");
  const registries = /^src\/(?:dialect|provider)\/index\.ts$|^src\/provider\/[a-z-]+\/index\.ts$/;
  expect(found.filter((file) => !registries.test(file))).toEqual([]);
});

test("nothing is promised for later, and no text names where it was written", () => {
  const banned = [
    /\b(?:TODO|FIXME|XXX|HACK|WIP)\b/,
    /simplified for now|for the moment|not (?:yet )?implemented|\bstub(?:bed)?\b/i,
    /(?<![\w.])\/work\/|\/shared\//,
  ];
  const texts = globSync("{src,console,bin,tools,bench,proto,docs}/**/*.{ts,tsx,js,proto,md}", {
    cwd: root,
  });
  const pages = globSync("*.md", { cwd: root });
  const found = [...texts, ...pages].flatMap((file) =>
    readFileSync(join(root, file), "utf8")
      .split("\n")
      .flatMap((line, index) =>
        banned.some((word) => word.test(line)) ? [`${file}:${index + 1} ${line.trim()}`] : [],
      ),
  );
  expect(found).toEqual([]);
});

test("no file is named in any way but kebab-case", () => {
  const named = files.map((file) => basename(file));
  expect(named.filter((name) => !/^[a-z0-9]+(?:-[a-z0-9]+)*\.tsx?$/.test(name))).toEqual([]);
});
