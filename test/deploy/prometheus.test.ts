/** Alert rules and dashboards of `deploy/`: their queries, and what Debian's promtool says. */
import { execFileSync, spawnSync } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { createMetrics, type GaugeName, gauges } from "../../src/observe/metrics.ts";
import { ask, useGateway } from "../behaviour/harness.ts";
import { readPage, root } from "../docs/page.ts";

const f = useGateway();

const rulesFile = join(root, "deploy/prometheus/alerts.yaml");

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook: string };
}
const { groups } = parse(readFileSync(rulesFile, "utf8")) as {
  groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[];
};
const rules = groups.flatMap((group) => group.rules);

interface Dashboard {
  readonly uid: string;
  readonly panels: readonly {
    readonly title: string;
    readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[];
  }[];
}
const dashboards = globSync("deploy/grafana/*.json", { cwd: root }).map(
  (file) => JSON.parse(readFileSync(join(root, file), "utf8")) as Dashboard,
);

/** A query with the place where it is written, and the labels that its text shows. */
interface Query {
  readonly place: string;
  readonly expr: string;
  readonly shown: readonly string[];
}

const shownLabels = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)].map(([, label = ""]) => label);

const ofRules: Query[] = rules.map(({ alert, expr, annotations }) => ({
  place: alert,
  expr,
  shown: shownLabels(annotations.summary, /\$labels\.(\w+)/g),
}));
const ofDashboards: Query[] = dashboards.flatMap(({ uid, panels }) =>
  panels.flatMap(({ title, targets }) =>
    targets.map(({ expr, legendFormat }) => ({
      place: `${uid}: ${title}`,
      expr,
      shown: shownLabels(legendFormat, /\{\{(\w+)\}\}/g),
    })),
  ),
);

/** Properties of a metric that prom-client does not export. */
interface Declared {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  readonly constructor: { readonly name: string };
}

/** Labels and help by the names of series, as Prometheus stores them. */
function declaredSeries(): Map<string, Pick<Declared, "help" | "labelNames">> {
  const metrics = createMetrics();
  for (const name of Object.keys(gauges)) metrics.gauge(name as GaugeName, () => 0);
  const all = metrics.registry.getMetricsAsArray() as unknown as readonly Declared[];
  const series = all.flatMap((metric) => {
    const isHistogram = metric.constructor.name === "Histogram";
    const endings = isHistogram ? ["_bucket", "_sum", "_count"] : [""];
    return endings.map((ending) => [`${metric.name}${ending}`, metric] as const);
  });
  return new Map<string, Pick<Declared, "help" | "labelNames">>([
    ...series,
    ["up", { help: "", labelNames: [] }],
  ]);
}

/** Labels that Prometheus adds. */
const added = ["job", "instance", "le"];

/** The names in a query that no series has. */
function wrongParts(expr: string): string[] {
  const known = declaredSeries();
  const wrong: string[] = [];
  const named = [...expr.matchAll(/\b(up|(?:uas|nodejs|process)_\w+)\b(?:\{([^}]*)\})?/g)];
  const labels = new Set(added);
  for (const [, name = "", matchers = ""] of named) {
    const series = known.get(name);
    if (series === undefined) wrong.push(name);
    for (const label of series?.labelNames ?? []) labels.add(label);
    for (const [, label = "", value = ""] of matchers.matchAll(/(\w+)[=!]~?"([^"]*)"/g)) {
      if (added.includes(label)) continue;
      if (!series?.labelNames.includes(label)) wrong.push(`${name}{${label}}`);
      // The help lists the values of every label but `ending`, which the contract lists.
      if (label === "ending" || !/^[a-z_|]+$/.test(value)) continue;
      for (const word of value.split("|"))
        if (!series?.help.includes(word)) wrong.push(`${name}{${label}="${word}"}`);
    }
  }
  if (named.length === 0) wrong.push("no metric");
  for (const [, list = ""] of expr.matchAll(/\bby \(([^)]*)\)/g))
    for (const label of list.split(/,\s*/)) if (!labels.has(label)) wrong.push(`by ${label}`);
  return wrong;
}

/** The labels that the result of a query can have; undefined: all of its series. */
function resultLabels(expr: string): Set<string> | undefined {
  const lists = [...expr.matchAll(/\bby \(([^)]*)\)/g)];
  if (lists.length === 0) return undefined;
  return new Set(lists.flatMap(([, list = ""]) => list.split(/,\s*/)));
}

test("every query of alerts and dashboards names metrics, labels and values that the gateway has", () => {
  const wrong = [...ofRules, ...ofDashboards].flatMap(({ place, expr }) =>
    wrongParts(expr).map((part) => `${place}: ${part}`),
  );
  expect(ofRules.length).toBeGreaterThan(20);
  expect(ofDashboards.length).toBeGreaterThan(50);
  expect(wrong).toEqual([]);
});

test("summaries and legends show labels that their queries keep", () => {
  const missing = [...ofRules, ...ofDashboards].flatMap(({ place, expr, shown }) => {
    const has = resultLabels(expr);
    return shown
      .filter((label) => has !== undefined && !has.has(label))
      .map((l) => `${place}: ${l}`);
  });
  expect(missing).toEqual([]);
});

test("every metric of the gateway is in a dashboard", () => {
  const all = ofDashboards.map(({ expr }) => expr).join("\n");
  const names = [...declaredSeries().keys()].filter((name) => name.startsWith("uas_"));
  const bases = new Set(names.map((name) => name.replace(/_(?:bucket|sum|count)$/, "")));
  expect([...bases].filter((name) => !all.includes(name))).toEqual([]);
});

test("every alert has a severity, a summary, and a row in the runbook of docs/observe.md", () => {
  const page = readPage("docs/observe.md");
  for (const { alert, labels, annotations } of rules) {
    expect(["page", "ticket"], alert).toContain(labels.severity);
    expect(annotations.summary, alert).not.toBe("");
    expect(annotations.runbook, alert).toBe("docs/observe.md#when-an-alert-fires");
    expect(page, alert).toMatch(new RegExp(`^\\| .*\`${alert}\`.* \\|`, "m"));
  }
  expect(page).toContain("### When an alert fires");
});

const hasPromtool = spawnSync("promtool", ["--version"]).status === 0;

/** Runs promtool. @throws with its output if it finds a fault */
const promtool = (args: readonly string[], input = ""): string =>
  execFileSync("promtool", args, { input, encoding: "utf8", stdio: "pipe" });

test.skipIf(!hasPromtool)("promtool accepts the rules, and their unit tests pass", () => {
  promtool(["check", "rules", rulesFile]);
  promtool(["test", "rules", join(root, "deploy/prometheus/alerts.test.yaml")]);
});

test.skipIf(!hasPromtool)("promtool can parse every query of the dashboards", () => {
  const folder = mkdtempSync(join(tmpdir(), "uas-rules-"));
  try {
    const file = join(folder, "queries.yaml");
    const recorded = ofDashboards.map(({ expr }, index) => ({
      record: `query:${index}`,
      expr: expr.replaceAll("$__rate_interval", "5m"),
    }));
    writeFileSync(file, stringify({ groups: [{ name: "dashboards", rules: recorded }] }));
    promtool(["check", "rules", file]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test.skipIf(!hasPromtool)("promtool finds no fault in a live /metrics page", async () => {
  expect((await f.chat(ask)).status).toBe(200);
  const page = await (await fetch(`${f.gateway.internalUrl}/metrics`)).text();
  expect(page).toContain("uas_call_duration_seconds_count{");
  expect(promtool(["check", "metrics"], page)).toBe("");
});
