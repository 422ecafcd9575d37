import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { knownDialects, knownKinds, modelTypes } from "../../../src/config/kinds.ts";
import { problemsOf } from "./support.ts";

const docs = join(import.meta.dirname, "../../../docs");
const page = readFileSync(join(docs, "uas-yaml.md"), "utf8");
const reference = readFileSync(join(docs, "reference/uas-yaml.md"), "utf8");
const tasks = readFileSync(join(docs, "configuration.md"), "utf8");
const blocks = [...`${tasks}${page}`.matchAll(/^```yaml\n([^]*?)^```/gm)].map(
  ([, yaml = ""]) => yaml,
);
const env = {
  OPENAI_API_KEY: "k",
  GEMINI_API_KEY: "k",
  GEMINI_HOST: "gemini.example",
  BACKUP_HOST: "backup.example",
  BACKUP_KEY: "k",
  OPENROUTER_KEY: "k",
  AZURE_API_KEY: "k",
  S3_ACCESS_KEY_ID: "k",
  S3_SECRET_ACCESS_KEY: "k",
  SMS_ACCESS_KEY_ID: "k",
  SMTP_URL: "smtp://u:p@mail.test",
  SMS_ACCESS_KEY_SECRET: "k",
};

describe("docs/configuration.md and docs/uas-yaml.md", () => {
  it.each(blocks.map((yaml, index) => [index, yaml] as const))(
    "example %i is a valid configuration",
    (_index, yaml) => {
      const local = yaml.replace("/run/secrets/backup-key", "backup-key");
      expect(problemsOf(local, { env, files: { "backup-key": "k\n" } })).toEqual([]);
    },
  );

  it("docs/reference/uas-yaml.md names every kind, dialect and model type", () => {
    for (const word of [...knownKinds, ...knownDialects, ...modelTypes.keys()]) {
      expect(reference).toContain(`\`${word}\``);
    }
  });
});
