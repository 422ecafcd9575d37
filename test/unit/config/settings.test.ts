import { availableParallelism } from "node:os";
import { describe, expect, it } from "vitest";
import { ConfigError } from "../../../src/config/problems.ts";
import { readSettings } from "../../../src/config/settings.ts";

function problemsOf(env: Record<string, string>): readonly string[] {
  try {
    readSettings(env, "/srv");
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

describe("settings", () => {
  it("settings have defaults that need no environment; an empty variable counts as not set", () => {
    const defaults = {
      configPath: undefined,
      dataDir: "/srv/.data",
      listen: { host: "127.0.0.1", port: 8080 },
      internalListen: { host: "127.0.0.1", port: 8081 },
      databaseUrl: undefined,
      publicUrl: undefined,
      consoleUrl: undefined,
      trustProxy: [],
      masterKey: undefined,
      operatorToken: undefined,
      workers: 1,
      watchesConfig: false,
      maxConcurrentCalls: 1_000,
      drainDelayMs: 5_000,
      warnings: [],
    };
    expect(readSettings({}, "/srv")).toEqual(defaults);
    expect(readSettings({ UAS_LISTEN: " ", DATABASE_URL: "" }, "/srv")).toEqual(defaults);
  });

  it("settings are read from the environment", () => {
    const env = {
      UAS_CONFIG: "x.yaml",
      UAS_DATA_DIR: "data",
      UAS_LISTEN: "0.0.0.0:0",
      UAS_INTERNAL_LISTEN: "[::1]:9000",
      DATABASE_URL: "postgresql://u:p@db/uas",
      UAS_PUBLIC_URL: "https://ai.example.com/",
      UAS_CONSOLE_URL: "https://console.example.com/",
      UAS_TRUST_PROXY: "10.0.0.0/8, loopback,fd00::/8",
      UAS_OPERATOR_TOKEN: "token",
      UAS_MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
      UAS_WORKERS: "4",
      UAS_MAX_CONCURRENT_CALLS: "250",
      UAS_DRAIN_DELAY: "1500ms",
    };
    expect(readSettings(env, "/srv")).toEqual({
      configPath: "x.yaml",
      dataDir: "/srv/data",
      listen: { host: "0.0.0.0", port: 0 },
      internalListen: { host: "::1", port: 9000 },
      databaseUrl: "postgresql://u:p@db/uas",
      publicUrl: "https://ai.example.com",
      consoleUrl: "https://console.example.com",
      trustProxy: ["10.0.0.0/8", "loopback", "fd00::/8"],
      masterKey: Buffer.alloc(32, 7),
      operatorToken: "token",
      watchesConfig: false,
      workers: 4,
      maxConcurrentCalls: 250,
      drainDelayMs: 1_500,
      warnings: [],
    });
  });

  it("settings refuse a console with the host name of the API, whose cookies it would share", () => {
    const problems = problemsOf({
      UAS_PUBLIC_URL: "https://ai.example.com",
      UAS_CONSOLE_URL: "https://ai.example.com:8443",
    });
    expect(problems).toEqual([expect.stringMatching(/^UAS_CONSOLE_URL: .*choose another one/)]);
  });

  it.each([
    ["UAS_LISTEN", "8080", "names no host: write 127.0.0.1:8080, or 0.0.0.0:8080 for all"],
    ["UAS_LISTEN", ":80", "names no host: write 127.0.0.1:80, or 0.0.0.0:80 for all"],
    ["UAS_LISTEN", "::1:8080", "write an IPv6 address in brackets, such as [::1]:8080"],
    ["UAS_LISTEN", "localhost", "must be host:port with a port"],
    ["UAS_LISTEN", "a:65536", "must be host:port with a port"],
    ["UAS_LISTEN", "[a]:1", "must be host:port with a port"],
    ["UAS_LISTEN", "http://a:1", "must be host:port with a port"],
    ["UAS_INTERNAL_LISTEN", "127.0.0.1:8080", "is the same address as UAS_LISTEN"],
    ["UAS_PUBLIC_URL", "ai.example.com", "must be an origin such as"],
    ["UAS_PUBLIC_URL", "https://a.example/x", "write https://a.example"],
    ["UAS_PUBLIC_URL", "https://u:hunter@a.example", "write https://a.example"],
    ["UAS_CONSOLE_URL", "console.example.com", "must be an origin such as"],
    ["UAS_CONSOLE_URL", "https://a.example/console", "write https://a.example"],
    ["UAS_TRUST_PROXY", "true", '"true" is not an address or range'],
    ["UAS_TRUST_PROXY", "10.0.0.0/33", '"10.0.0.0/33" is not an address or range'],
    ["UAS_OPERATOR_TOKEN", "a b", "must be visible ASCII characters"],
    ["UAS_MASTER_KEY", "hunter", "must be 32 bytes in base64"],
    ["UAS_MASTER_KEY", Buffer.alloc(31).toString("base64"), "must be 32 bytes in base64"],
    ["UAS_MASTER_KEY", "0".repeat(64), "openssl rand -base64 32"],
    ["UAS_WORKERS", "0", "must be a number of processes from 1 to 64, or auto"],
    ["UAS_WORKERS", "65", "must be a number of processes from 1 to 64, or auto"],
    ["UAS_WORKERS", "2.5", "must be a number of processes from 1 to 64, or auto"],
    ["UAS_WORKERS", "1e1", "must be a number of processes from 1 to 64, or auto"],
    ["UAS_WORKERS", "all", "must be a number of processes from 1 to 64, or auto"],
    ["UAS_MAX_CONCURRENT_CALLS", "0", "must be a number of calls from 1 to 1000000"],
    ["UAS_MAX_CONCURRENT_CALLS", "1e3", "must be a number of calls from 1 to 1000000"],
    ["UAS_DRAIN_DELAY", "5", "must be a duration from 0s to 10m, such as 5s"],
    ["UAS_DRAIN_DELAY", "11m", "must be a duration from 0s to 10m"],
    ["DATABASE_URL", "mysql://u:hunter@h/d", "must be the address of a PostgreSQL server"],
  ])("refuse %s=%s and say what to write", (name, value, message) => {
    const problems = problemsOf({ [name]: value });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(new RegExp(`^${name}: `));
    expect(problems[0]).toContain(message);
    expect(problems[0]).not.toContain("hunter");
  });

  it("start one worker per available core where UAS_WORKERS is auto", () => {
    expect(readSettings({ UAS_WORKERS: "auto" }, "/srv").workers).toBe(availableParallelism());
  });

  it("report all problems at once", () => {
    expect(problemsOf({ UAS_LISTEN: "x", UAS_PUBLIC_URL: "y", DATABASE_URL: "z" })).toHaveLength(3);
  });

  it("warn of variables that have no effect any more, and say what to do in their place", () => {
    const { warnings } = readSettings({ UAS_WARM_UP: "off", UAS_REUSE_PORT: "on" }, "/srv");
    expect(warnings).toEqual([
      "UAS_WARM_UP: has no effect any more, remove it: a gateway is ready when it can serve calls",
      "UAS_REUSE_PORT: has no effect any more, remove it: use UAS_WORKERS and SIGHUP, or two gateways behind a load balancer",
    ]);
  });

  it("warn of unknown variables that begin with UAS_", () => {
    const { warnings } = readSettings({ UAS_DATADIR: "x", UAS_ELEPHANT: "y", OTHER: "z" }, "/srv");
    expect(warnings).toEqual([
      "UAS_DATADIR: unknown variable, it has no effect, did you mean UAS_DATA_DIR?",
      "UAS_ELEPHANT: unknown variable, it has no effect",
    ]);
  });
});
