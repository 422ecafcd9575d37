import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import packageFacts from "../../../package.json" with { type: "json" };
import { makePlace, type Place, Process } from "../../behaviour/lifecycle/process.ts";
import { install, type Installed, packCheckout, uas } from "./installed.ts";

let place: Place;
let installed: Installed;

beforeAll(async () => {
  place = makePlace();
  const packed = await packCheckout(join(place.folder, "packed"));
  installed = await install(packed, join(place.folder, "installed"));
}, 600_000);
afterAll(() => place.close());

test("a package brings no second Node.js, and both of its commands print its version", async () => {
  const commands = join(installed.folder, "node_modules/.bin");
  expect(existsSync(join(commands, "node"))).toBe(false);
  for (const program of [join(commands, "uas"), join(commands, "uas-gateway")]) {
    const version = await uas({ ...installed, program }, { place, env: {} }, "--version");
    expect(version.trim()).toBe(packageFacts.version);
  }
});

test("an installed package serves pages and charged calls with two workers, and its ledger is consistent", async () => {
  const env = { UAS_WORKERS: "2" };
  const gateway = new Process(place, env, [installed.program]);
  try {
    const { url } = await gateway.listening();
    const [, key] = /API key\s+(\S+)/.exec(gateway.out) ?? [];
    const reply = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: "demo/instant",
        messages: [{ role: "user", content: "Hello" }],
      }),
    });
    expect(reply.status).toBe(200);
    expect(await reply.text()).toContain("demo model of UAS Gateway");
    for (const path of ["/console/", "/openapi.json", "/llms.txt"]) {
      const page = await fetch(`${url}${path}`);
      expect({ path, status: page.status }).toEqual({ path, status: 200 });
      await page.text();
    }
    const requestId = reply.headers.get("x-request-id") ?? "";
    const shown = await uas(installed, { place, env }, "calls", "show", requestId, "--json");
    expect(JSON.parse(shown)).toMatchObject({ model: "demo/instant", errorCode: null });
    expect(await uas(installed, { place, env }, "ledger", "audit")).toContain("ok: the ledger");
    expect((await gateway.stop()).code).toBe(0);
  } finally {
    await gateway.kill();
  }
});
