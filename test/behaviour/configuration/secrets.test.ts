/** Secrets that change outside the configuration come into force without a restart. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openServed, type Served, type ServedProcess, stream } from "../lifecycle/served.ts";

let served: Served;
let gateway: ServedProcess;
let key: string;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "uas-secrets-"));
  writeFileSync(join(folder, "key"), "first-credential");
  served = await openServed();
  served.configure((yaml) => yaml.replace("${env:VENDOR_KEY}", `\${file:${folder}/key}`));
  gateway = await served.start();
  ({ key } = await served.customer());
});
afterAll(async () => {
  await served?.close();
  rmSync(folder, { recursive: true, force: true });
});

async function credentialOfNextCall(): Promise<string | undefined> {
  await stream(gateway.url, key);
  return served.upstream.requests.at(-1)?.headers.authorization;
}

it("a credential that is rotated in its file is used by the next call, without a signal", async () => {
  expect(await credentialOfNextCall()).toBe("Bearer first-credential");
  writeFileSync(join(folder, "key"), "second-credential");
  await gateway.logged("the configuration was loaded");
  expect(await credentialOfNextCall()).toBe("Bearer second-credential");
});

it("an empty file keeps the credential before, and the log says why", async () => {
  writeFileSync(join(folder, "key"), "");
  const line = await gateway.logged(
    "the configuration was not loaded; the previous one stays in force",
  );
  expect(line["reason"]).toContain(`file ${folder}/key is empty`);
  expect(await credentialOfNextCall()).toBe("Bearer second-credential");
  for (const credential of ["first-credential", "second-credential"]) {
    expect(gateway.out).not.toContain(credential);
  }
});
