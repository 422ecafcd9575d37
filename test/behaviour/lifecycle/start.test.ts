/** The first minutes of an installation: what it prints, and what it says where it cannot start. */
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, describe, expect, inject, it } from "vitest";
import { createTestDatabase } from "../../support/database.ts";
import { send } from "../../support/raw-http.ts";
import { withDatabase } from "../../support/test-server.ts";
import { makePlace, type Place, Process, until } from "./process.ts";

const run = promisify(execFile);
const open: Process[] = [];
afterEach(async () => {
  for (const process of open.splice(0)) await process.kill();
});

function start(place: Place, env?: Readonly<Record<string, string>>): Process {
  const process = new Process(place, env);
  open.push(process);
  return process;
}

/** Returns an occupied port. */
async function takePort(): Promise<{ address: string; release: () => Promise<void> }> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    address: `127.0.0.1:${port}`,
    release: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

describe("an empty folder", () => {
  const place = makePlace();
  afterAll(() => place.close());
  const pidFile = join(place.folder, ".data/postgres/postmaster.pid");

  /** Nothing of the embedded PostgreSQL runs any more. */
  async function expectNothingLeft(): Promise<void> {
    expect(existsSync(pidFile)).toBe(false);
    const { stdout } = await run("ps", ["-A", "-o", "args"]);
    expect(stdout).not.toContain(place.folder);
  }

  it("the first start prints a key that works and a curl that can be pasted; its database may die", async () => {
    const gateway = start(place);
    const { url } = await gateway.listening();
    const block = gateway.out.slice(0, gateway.out.indexOf('{"level"'));
    const shown = /API key +(uas_[A-Za-z0-9]{32})\n/.exec(gateway.out)?.[1] ?? "";
    expect(gateway.out.match(/demo balance of 10 USD/g)).toHaveLength(1);
    expect(gateway.out).toContain(`Base URL  ${url}/v1\n`);
    expect(gateway.out).toMatch(new RegExp(`Console +${url}/console/welcome#[A-Za-z0-9_-]{43}\n`));
    expect(block).not.toContain("undefined");
    const curl = /Try it:\n([\s\S]*?)\n\n/.exec(gateway.out)?.[1] ?? "";
    const { stdout } = await run("sh", ["-c", curl], { timeout: 30_000 });
    expect(JSON.parse(stdout)).toMatchObject({ object: "chat.completion", model: "demo-chat" });
    const models = (): Promise<number> =>
      send(`${url}/v1/models`, {
        method: "GET",
        headers: { authorization: `Bearer ${shown}` },
      }).then(({ status }) => status);
    expect(await models()).toBe(200);

    // Killed: the gateway says 503, starts it again and serves.
    process.kill(Number(readFileSync(pidFile, "utf8").split("\n")[0]), "SIGKILL");
    const chat = async (): Promise<number> => {
      const headers = { authorization: `Bearer ${shown}`, "content-type": "application/json" };
      const body = '{"model":"demo/instant","messages":[{"role":"user","content":"Hi"}]}';
      return (await send(`${url}/v1/chat/completions`, { headers, body })).status;
    };
    const statuses = new Set<number>();
    await until("a call works again", async () => {
      const status = await chat();
      statuses.add(status);
      return status === 200 ? status : undefined;
    });
    expect([...statuses].filter((status) => status !== 200 && status !== 503)).toEqual([]);

    const { code, err } = await gateway.stop();
    expect({ code, err }).toEqual({ code: 0, err: "" });
    await expectNothingLeft();
  });

  it("the second start prints no key", async () => {
    const gateway = start(place);
    const { url } = await gateway.listening();
    expect(gateway.out).not.toMatch(/uas_[A-Za-z0-9]{32}/);
    expect(gateway.out).toContain(`UAS Gateway listens on ${url}\n`);
    expect(gateway.out).toContain("uas key create --account ID");
    expect((await gateway.stop()).code).toBe(0);
  });

  it.each(["UAS_LISTEN", "UAS_INTERNAL_LISTEN"])(
    "a taken port (%s) is one clear line, exit 1, and nothing is left running",
    async (variable) => {
      const taken = await takePort();
      const { code, err } = await start(place, { [variable]: taken.address }).ended;
      await taken.release();
      expect(code).toBe(1);
      expect(err).toBe(
        `uas: cannot listen on ${taken.address}: another program uses the port; set ${variable}=HOST:PORT\n`,
      );
      await expectNothingLeft();
    },
  );
});

describe("a configuration of one's own", () => {
  const yaml = `version: 1
vendors: { demo: { kind: demo } }
models:
  mine: { type: TEXT, routes: [{ vendor: demo, model: chat }], max_output_tokens: 9, price: { input: "1", output: "1" } }
`;

  it("prints how to make an account, creates none, and shows the public address", async () => {
    const database = await createTestDatabase();
    const place = makePlace({ "uas.yaml": yaml });
    const env = { DATABASE_URL: database.url, UAS_PUBLIC_URL: "https://ai.example" };
    const gateway = start(place, env);
    const { url } = await gateway.listening();
    expect(gateway.out).toContain("uas account create --name NAME --balance 10.00");
    expect(gateway.out).toContain("uas console link");
    expect(gateway.out).not.toContain("welcome#");
    expect(gateway.out).toContain(`UAS Gateway listens on ${url}\n`);
    expect(gateway.out).toContain("Base URL  https://ai.example/v1\n");
    expect(await gateway.logged("listening")).toMatchObject({
      listenUrl: url,
      publicUrl: "https://ai.example",
    });
    expect(gateway.out).not.toMatch(/uas_[A-Za-z0-9]{32}/);
    expect((await gateway.stop()).code).toBe(0);
    await database.close();
    place.close();
  });

  it("is refused with its problems, one a line", async () => {
    const place = makePlace({ "uas.yaml": "version: 1\nvendor: {}\n" });
    const { code, err, out } = await start(place).ended;
    place.close();
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toContain('uas.yaml:2:1 vendor: unknown key, did you mean "vendors"?\n');
    for (const line of err.trim().split("\n")) expect(line).toMatch(/^uas\.yaml:\d+:\d+ \S/);
  });
});

describe("what is missing", () => {
  it("a database that is not there is one line without its password, exit 1", async () => {
    const missing = new URL(withDatabase(inject("server").adminUrl, "uas_none"));
    missing.password = "canary-password";
    const place = makePlace();
    const { code, err, out } = await start(place, { DATABASE_URL: missing.href }).ended;
    place.close();
    expect(code).toBe(1);
    expect(err).toMatch(/^uas: \S[^\n]*\n$/);
    expect(`${out}${err}`).not.toContain("canary");
  });

  it("a Node.js that is too old is one line that says what to do", async ({ skip }) => {
    const old = (await findOldNode()) ?? skip("no Node.js before 24 on this machine");
    const bin = join(import.meta.dirname, "../../../bin/uas.js");
    const refused = await run(old, [bin, "serve"]).then(
      () => undefined,
      (error: unknown) => error as { code: number; stdout: string; stderr: string },
    );
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused?.stderr).toMatch(
      /^uas needs Node\.js 24 or later, this is \d+\.\d+\.\d+: [^\n]* run `npm ci` [^\n]*\n$/,
    );
  });
});

/** A Node.js of the machine itself, if it has an old one. */
async function findOldNode(): Promise<string | undefined> {
  for (const path of ["/usr/bin/node", "/usr/local/bin/node"]) {
    if (!existsSync(path)) continue;
    const { stdout } = await run(path, ["--version"]);
    if (Number(/^v(\d+)/.exec(stdout)?.[1]) < 24) return path;
  }
  return undefined;
}
