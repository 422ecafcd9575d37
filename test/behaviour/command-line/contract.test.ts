import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { buildContract } from "../../unit/contract/edited-contract.ts";
import { run, runJson } from "./support.ts";

const folder = mkdtempSync(join(tmpdir(), "uas-compare-"));
const [older, newer] = [join(folder, "older.binpb"), join(folder, "newer.binpb")];
beforeAll(() => {
  writeFileSync(older, buildContract());
  const narrower = { from: "= ACCESS_SESSION", to: "= ACCESS_OPERATOR" };
  writeFileSync(newer, buildContract([{ file: "key/v1/key_service.proto", ...narrower }]));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("contract compare lists what breaks clients, and exits with 1", async () => {
  const line = ["contract", "compare", older, newer];
  const { code, out, opened } = await run(line, { files: { "uas.yaml": "broken" } });
  expect(out).toMatch(/^Breaking\n {2}Changed: RPC `uas\.key\.v1\.KeyService\.\w+`, access from/);
  expect([code, opened]).toEqual([1, []]);
  const { json } = await runJson(line);
  expect(json).toMatchObject({
    breaking: true,
    changes: [{ action: "changed", kind: "RPC", property: { name: "access" } }],
  });
});

it("contract compare exits with 0 if nothing breaks clients", async () => {
  const ran = await run(["contract", "compare", older, older]);
  expect(ran).toMatchObject({ code: 0, out: "no changes\n" });
});

it("contract compare names a file that is no descriptor", async () => {
  const world = { files: { "notes.txt": "no descriptor" } };
  const { code, err } = await run(["contract", "compare", older, "notes.txt"], world);
  expect(err).toMatch(/^uas: \S+notes\.txt is not a readable descriptor: write one with/);
  expect(code).toBe(1);
});
