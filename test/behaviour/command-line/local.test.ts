import { describe, expect, it } from "vitest";
import { run, runJson } from "./support.ts";

const valid = `version: 1
vendors:
  local: { kind: openai-compatible, base_url: http://127.0.0.1:1/v1, api_key: "\${env:LOCAL_KEY}" }
  claude: { kind: anthropic, base_url: https://api.anthropic.com, api_key: "\${env:LOCAL_KEY}" }
models:
  small: { type: TEXT, routes: [{ vendor: local, model: s }], max_output_tokens: 9, price: { input: "0.10", output: 2 } }
`;
const warning =
  "warning: uas.yaml:4:11 vendors.claude: this version cannot serve kind anthropic yet: routes to it are not used\n";

describe("check: the configuration alone, no database", () => {
  it("accepts a valid file and shows its warnings", async () => {
    const world = { files: { "uas.yaml": valid }, env: { LOCAL_KEY: "k" } };
    const ran = await run(["check"], world);
    expect(ran).toMatchObject({
      code: 0,
      out: "ok: 1 vendor, 1 model\n",
      err: warning,
      opened: [],
    });
    const { json } = await runJson(["check", "uas.yaml"], world);
    expect(json).toMatchObject({ ok: true, source: "uas.yaml", vendors: 1, models: 1 });
  });

  it("accepts the built-in demo where there is no file", async () => {
    expect(await run(["check"])).toMatchObject({ code: 0, out: "ok: 1 vendor, 2 models\n" });
  });

  it("refuses with all problems, one a line", async () => {
    const files = { "bad.yaml": valid.replace("version: 1", "version: 3") };
    const ran = await run(["check", "bad.yaml"], { files });
    expect(ran).toMatchObject({ code: 1, out: "" });
    expect(ran.err.trimEnd().split("\n")).toEqual([
      "bad.yaml:1:10 version: this program reads version 1 only; write version: 1",
      "bad.yaml:3:79 vendors.local.api_key: environment variable LOCAL_KEY is not set",
      "bad.yaml:4:76 vendors.claude.api_key: environment variable LOCAL_KEY is not set",
    ]);
    const { json, code } = await runJson(["check", "bad.yaml"], { files });
    expect(code).toBe(1);
    expect(json).toMatchObject({ ok: false, errors: { length: 3 } });
  });

  it("refuses a file that is not there", async () => {
    const ran = await run(["check", "none.yaml"]);
    expect(ran.code).toBe(1);
    expect(ran.err).toBe("none.yaml: does not exist; name another with UAS_CONFIG\n");
  });
});

describe("models list without a gateway: the configuration alone, without the vendors' secrets", () => {
  it("lists models and exact prices", async () => {
    const world = { files: { "uas.yaml": valid } };
    const { json, opened } = await runJson(["models", "list"], world);
    expect(opened).toEqual([]);
    expect(json).toEqual([
      {
        modelKey: "small",
        name: "small",
        type: "TEXT",
        price: { input: "0.1", output: "2" },
        maxOutputTokens: 9,
        deadlineMs: 1_800_000,
        cancelBilling: "upstream",
        routes: [{ vendor: "local", model: "s" }],
        state: "in_the_file",
      },
    ]);
    const { out } = await run(["models", "list"], world);
    expect(out.split("\n")).toEqual([
      "MODEL  STATE        TYPE  USD PER 1M TOKENS OR UNIT  VENDORS",
      "small  in the file  TEXT  input 0.1, output 2        local",
      "",
    ]);
  });
});

describe("a folder without a database", () => {
  const env = { DATABASE_URL: "" };

  it.each([
    ["account", "create", "--name", "Acme", "--balance", "10"],
    ["console", "link"],
    ["master-key", "rotate", "--lost"],
  ])("only serve creates one: %s %s is refused in one sentence", async (...line) => {
    const ran = await run(line, { env });
    expect(ran).toMatchObject({ code: 1, out: "", opened: [], created: [] });
    expect(ran.err).toMatch(
      /^uas: there is no database in \S+, and DATABASE_URL is not set: start the gateway with `uas serve`, [^\n]* --env-file FILE\n$/,
    );
  });

  it("the variables of a service are read from its file, and win", async () => {
    const files = { env: "DATABASE_URL='postgresql://db.example/it'\n# a comment\n" };
    const line = ["account", "list", "--env-file", "env"];
    const { opened } = await run(line, { files, env });
    expect(opened[0]?.settings.databaseUrl).toBe("postgresql://db.example/it");
    const refused = await run(["account", "list", "--env-file", "none"], { files, env });
    expect(refused.code).toBe(1);
    expect(refused.err).toMatch(/^uas: \S+none does not exist: [^\n]*\n$/);
  });
});

describe("serve", () => {
  it("hands settings and configuration on, and warns", async () => {
    const env = { LOCAL_KEY: "k", UAS_LISTEN: "127.0.0.1:0", UAS_LISTN: "x" };
    const ran = await run(["serve"], { files: { "uas.yaml": valid }, env });
    expect(ran).toMatchObject({ code: 0, out: "" });
    expect(ran.served[0]?.settings.listen).toEqual({ host: "127.0.0.1", port: 0 });
    expect(ran.served[0]?.config.vendors.get("local")?.apiKey).toBe("k");
    expect(ran.err).toBe(
      `warning: UAS_LISTN: unknown variable, it has no effect, did you mean UAS_LISTEN?\n${warning}`,
    );
  });

  it("does not start on a wrong environment or file", async () => {
    const ran = await run(["serve"], { env: { UAS_LISTEN: "8080" } });
    expect(ran).toMatchObject({ code: 1, served: [] });
    expect(ran.err).toMatch(/^UAS_LISTEN: names no host: write 127\.0\.0\.1:8080/);
    // With a database, a revision in it may be in force.
    const world = { files: { "uas.yaml": valid }, env: { DATABASE_URL: "" } };
    expect(await run(["serve"], world)).toMatchObject({ code: 1 });
  });
});

describe("vendor presets", () => {
  it("lists the known vendors with their sources, without a configuration", async () => {
    const { json } = await runJson(["vendor", "presets"], { files: { "uas.yaml": "broken" } });
    expect(json).toContainEqual({
      preset: "deepseek",
      kind: "openai-compatible",
      baseUrl: "https://api.deepseek.com",
      needsApiKey: true,
      limitParameter: "max_tokens",
      quirks: {},
      modelTypes: ["TEXT"],
      source: "https://api-docs.deepseek.com/",
    });
    const { out } = await run(["vendor", "presets"]);
    expect(out).toMatch(/^azure-openai +\(yours\) +required +TEXT,IMAGE,AUDIO,EMBEDDING +https:/m);
  });
});
