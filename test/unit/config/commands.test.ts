/** Secrets that come from commands, files and credentials of systemd. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCommands } from "../../../src/config/commands.ts";
import { loadConfig, loadWithCommands, type LoadOptions } from "../../../src/config/load.ts";
import { servedKinds } from "../../../src/provider/index.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "uas-commands-"));
  writeFileSync(join(folder, "key"), "from-a-file\n");
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function yaml(reference: string): string {
  return `version: 1
vendors:
  v: { kind: openai-compatible, base_url: "http://127.0.0.1:1/v1", api_key: "${reference}" }
models: {}
`;
}

function options(reference: string, more: Partial<LoadOptions> = {}): LoadOptions {
  const document = { source: "uas.yaml", content: yaml(reference) };
  return { document, env: {}, cwd: folder, kinds: servedKinds, secrets: new Map(), ...more };
}

async function keyOf(reference: string, more: Partial<LoadOptions> = {}) {
  const config = await loadWithCommands(options(reference, more));
  return config.vendors.get("v")?.apiKey;
}

describe("a command", () => {
  it("gives its output, runs in the folder of the configuration, and gets its words without a shell", async () => {
    expect(await keyOf("${exec:cat key}")).toBe("from-a-file");
    expect(await keyOf("${exec:printf %s-%s 'a' $HOME;id}")).toBe("a-$HOME;id");
  });

  it.each([
    ["${exec:/no/such/program}", /command \/no\/such\/program was not found: write its whole path/],
    ["${exec:false}", /command false ended with exit code 1: run it by hand/],
    ["${exec:true}", /command true printed nothing/],
    ["${exec:printf 'two words'}", /is not a credential/],
  ])("that gives no secret is a problem with its line: %s", async (reference, message) => {
    await expect(keyOf(reference)).rejects.toThrow(message);
    await expect(keyOf(reference)).rejects.toThrow(/^uas\.yaml:3:/);
  });

  it("that does not end is killed after its time, and its output is not shown", async () => {
    const results = await runCommands("${exec:sleep 600}", { cwd: folder, timeoutMs: 50 });
    expect([...results.values()]).toEqual([
      { problem: "the command sleep did not end within 0.05 s: run it by hand to see why" },
    ]);
  });

  it("is not run for commands that need no secret, nor for a document of the database", async () => {
    expect(loadConfig(options("${exec:false}")).vendors.get("v")?.apiKey).toBe("not-read-yet");
    const stored = { source: "revision 1", content: yaml("${exec:cat key}"), isStored: true };
    await expect(loadWithCommands(options("", { document: stored }))).rejects.toThrow(
      /a configuration that is applied runs no commands/,
    );
  });
});

it("a credential of systemd is read from the folder of the unit", async () => {
  const env = { CREDENTIALS_DIRECTORY: folder };
  expect(await keyOf("${credential:key}", { env })).toBe("from-a-file");
  await expect(keyOf("${credential:key}")).rejects.toThrow(/CREDENTIALS_DIRECTORY is not set/);
  await expect(keyOf("${credential:../key}", { env })).rejects.toThrow(/LoadCredential=/);
});

it("a document of the database reads files of the folders for secrets only", async () => {
  const at = (env: LoadOptions["env"]): Partial<LoadOptions> => ({
    env,
    document: { source: "revision 1", content: yaml(`\${file:${folder}/key}`), isStored: true },
  });
  await expect(keyOf("", at({}))).rejects.toThrow(/reads files below \/run\/secrets only/);
  expect(await keyOf("", at({ UAS_SECRETS_DIR: folder }))).toBe("from-a-file");
});

it.each(["UAS_MASTER_KEY", "UAS_OPERATOR_TOKEN", "DATABASE_URL", "PGPASSWORD"])(
  "%s cannot be sent to a vendor as its key or address",
  async (name) => {
    const env = { [name]: "secret" };
    await expect(keyOf(`\${env:${name}}`, { env })).rejects.toThrow(
      /a secret of the gateway itself/,
    );
  },
);
