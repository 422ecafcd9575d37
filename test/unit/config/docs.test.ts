import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { demoYaml } from "../../../src/config/demo-config.ts";
import { knownDialects, knownKinds, modelTypes, modelTypeWord } from "../../../src/config/kinds.ts";
import { presets } from "../../../src/config/presets.ts";
import { knownVariables } from "../../../src/config/settings.ts";
import { problemsOf } from "./support.ts";

const page = readFileSync(join(import.meta.dirname, "../../../docs/configuration.md"), "utf8");
const blocks = [...page.matchAll(/^```yaml\n([^]*?)^```/gm)].map(([, yaml = ""]) => yaml);
const env = {
  OPENAI_API_KEY: "k",
  GEMINI_API_KEY: "k",
  BACKUP_HOST: "backup.example",
  DEEPSEEK_API_KEY: "k",
  AZURE_API_KEY: "k",
  S3_ACCESS_KEY_ID: "k",
  S3_SECRET_ACCESS_KEY: "k",
  SMS_ACCESS_KEY_ID: "k",
  SMTP_URL: "smtp://u:p@mail.test",
  SMS_ACCESS_KEY_SECRET: "k",
};

/** A name as the configuration spells it. */
function snake(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

describe("docs/configuration.md", () => {
  it.each(blocks.map((yaml, index) => [index, yaml] as const))(
    "example %i of docs/configuration.md is a valid configuration",
    (_index, yaml) => {
      const local = yaml.replace("/run/secrets/backup-key", "backup-key");
      expect(problemsOf(local, { env, files: { "backup-key": "k\n" } })).toEqual([]);
    },
  );

  it("contains the built-in demo unchanged", () => {
    expect(blocks[0]).toBe(demoYaml);
  });

  it("names every kind, dialect and model type", () => {
    for (const word of [...knownKinds, ...knownDialects, ...modelTypes.keys()]) {
      expect(page).toContain(`\`${word}\``);
    }
  });

  it("has a row for every preset, with what it sets", () => {
    for (const [name, preset] of presets) {
      const { baseUrl, limitParameter, modelTypes: types, needsApiKey, quirks } = preset;
      const words = types.map((type) => `\`${modelTypeWord(type)}\``).join(", ");
      const address = baseUrl === "" ? "yours" : `\`${baseUrl}\``;
      const key = needsApiKey ? "required" : "optional";
      const differences = Object.entries(quirks ?? {}).map(
        ([quirk, value]) => `\`${snake(quirk)}: ${value}\``,
      );
      const row = `| \`${name}\` | ${address} | \`${limitParameter}\` | ${words} | ${key} |`;
      expect(page).toContain(`${row} ${differences.join(", ") || "none"} |`);
    }
  });

  it("lists every variable of the environment", () => {
    const rows = [...page.matchAll(/^\| `([A-Z_]+)` \|/gm)].map(([, name = ""]) => name);
    const read = [...knownVariables, "DATABASE_URL"].filter((name) => name !== "UAS_API_KEY");
    expect(rows.toSorted()).toEqual(read.toSorted());
  });
});
