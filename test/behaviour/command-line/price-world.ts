/** Runs commands on prices in a separate folder, with every kind of vendor. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCli } from "../../../src/cli/program.ts";
import { allKinds, servedKinds } from "../../unit/config/support.ts";

/** Files of the working directory, by name; one that is no text is written as JSON. */
export type Files = Readonly<Record<string, unknown>>;

/** Result of the command. */
export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  /** The text of a file of the folder after the command; `undefined` if there is none. */
  readonly file: (name: string) => string | undefined;
}

/** Runs a command of `uas` beside the files. */
export async function runIn(files: Files, ...line: readonly string[]): Promise<Ran> {
  const cwd = mkdtempSync(join(tmpdir(), "uas-price-"));
  const seen = { out: "", err: "" };
  const texts = new Map<string, string>();
  try {
    for (const [name, content] of Object.entries(files)) {
      const text = typeof content === "string" ? content : JSON.stringify(content);
      writeFileSync(join(cwd, name), text);
    }
    const code = await runCli(["node", "uas", ...line], {
      env: { KEY: "secret" },
      cwd,
      version: "1.2.3",
      out: (text) => void (seen.out += text),
      err: (text) => void (seen.err += text),
      servedKinds: async () => new Map([...servedKinds, ...allKinds]),
      app: () => Promise.reject(new Error("the database is not needed")),
    });
    for (const name of [...Object.keys(files), "out.yaml"]) {
      if (existsSync(join(cwd, name))) texts.set(name, readFileSync(join(cwd, name), "utf8"));
    }
    return { ...seen, code, file: (name) => texts.get(name) };
  } finally {
    rmSync(cwd, { recursive: true, force: true });
  }
}

/** A comparison of the JSON document. */
export interface ComparisonJson {
  readonly status: string;
  readonly current: readonly object[] | null;
  readonly imported: readonly object[] | null;
  readonly reason: string | null;
  readonly remedy: string | null;
}

/** The JSON document of an import, as far as tests read it. */
export interface ImportJson {
  readonly sources: readonly { readonly format: string; readonly title: string }[];
  readonly margin: string | null;
  readonly models: readonly {
    readonly modelKey: string;
    readonly routes: readonly (ComparisonJson & {
      readonly vendor: string;
      readonly model: string;
      readonly found: readonly {
        readonly entry: string;
        readonly match: string;
        readonly assumption: string | null;
        readonly notImported: readonly string[];
        readonly roundedUp: readonly string[];
      }[];
    })[];
    readonly price: ComparisonJson | null;
  }[];
  readonly yaml: string;
}

/** Runs `uas price import --json`. */
export async function importJson(files: Files, ...options: readonly string[]) {
  const ran = await runIn(files, "price", "import", ...options, "--json");
  if (ran.out === "") throw new Error(`nothing was printed: ${ran.err}`);
  return { ...ran, json: JSON.parse(ran.out) as ImportJson };
}

/** A configuration with one model `m` whose one route is the model `acme-1` of OpenAI. */
export function oneModel(route = "", rest = "", type = "TEXT"): string {
  return `version: 1
vendors:
  openai: { kind: openai, base_url: https://api.openai.com/v1, api_key: "\${env:KEY}" }
models:
  m:
    type: ${type}
    routes: [{ vendor: openai, model: acme-1${route} }]
    max_output_tokens: 9
    price: ${rest === "" ? '{ input: "9", output: "9" }' : rest}
`;
}

/** A list of models.dev with one model `acme-1` of OpenAI. */
export function modelsDev(cost: unknown): object {
  return { openai: { id: "openai", models: { "acme-1": { id: "acme-1", cost } } } };
}

/** A list of genai-prices with one model `acme-1` of OpenAI. */
export function genaiPrices(prices: unknown, more: object = {}): object {
  const model = { id: "acme-1", match: { equals: "acme-1" }, prices };
  return [{ id: "openai", name: "OpenAI", api_pattern: "x", models: [model], ...more }];
}
