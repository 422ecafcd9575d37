import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";

const bin = join(import.meta.dirname, "../../../bin/uas.js");
const cwd = mkdtempSync(join(tmpdir(), "uas-cli-"));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

/**
 * Runs the command as a process; `closeEarly` closes its output after the first piece, as `head`
 * does.
 */
async function uas(args: readonly string[], { closeEarly = false } = {}) {
  const child = spawn(process.execPath, [bin, ...args], {
    cwd,
    env: { PATH: process.env["PATH"] },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let out = "";
  let err = "";
  child.stdout.on("data", (chunk: Buffer) => {
    out += chunk.toString();
    if (closeEarly) child.stdout.destroy();
  });
  child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
  const code = await new Promise((resolve) => child.once("close", resolve));
  return { code, out, err };
}

describe("bin/uas.js", () => {
  it("answers --help without loading the program", async () => {
    const { code, out, err } = await uas(["--help"]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toContain("Usage: uas");
  });

  it("exits 2 on wrong usage and 1 on a refusal", async () => {
    expect((await uas(["srve"])).code).toBe(2);
    expect(await uas(["check", "none.yaml"])).toEqual({
      code: 1,
      out: "",
      err: "none.yaml: does not exist; name another with UAS_CONFIG\n",
    });
  });

  it("does not crash where its reader leaves early (| head)", async () => {
    const models = Array.from(
      { length: 2_000 },
      (_, index) =>
        `  model-${index}: { type: TEXT, routes: [{ vendor: demo, model: chat }], max_output_tokens: 9, price: { input: 1, output: 1 } }`,
    );
    const yaml = `version: 1\nvendors: { demo: { kind: demo } }\nmodels:\n${models.join("\n")}\n`;
    writeFileSync(join(cwd, "uas.yaml"), yaml);
    const ran = await uas(["models", "list", "--json"], { closeEarly: true });
    expect({ code: ran.code, err: ran.err }).toEqual({ code: 0, err: "" });
    expect(ran.out).toMatch(/^\[\n/);
  });
});
