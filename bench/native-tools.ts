/**
 * nginx as a vendor that sends one whole reply, and wrk as its load generator: native programs that
 * cost little.
 */
import { type ChildProcess, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { start } from "./child.ts";
import { freePort } from "./ports.ts";
import { requestBody, requestPath, type Scenario } from "./scenario.ts";

/** Returns the tools to install; undefined if none is missing. */
export function missingTools(): string | undefined {
  if (process.platform !== "linux") return "The bench needs Linux.";
  const missing = ["wrk", "nginx"].filter((name) => spawnSync(name, ["-v"]).error !== undefined);
  if (missing.length === 0) return undefined;
  return `The bench needs ${missing.join(" and ")}: apt-get install ${missing.join(" ")}.`;
}

const content = "The quick brown fox jumps over the lazy dog. ".repeat(18);

const reply = JSON.stringify({
  id: "chatcmpl-bench",
  object: "chat.completion",
  created: 1_760_000_000,
  model: "vendor-json",
  choices: [
    {
      index: 0,
      message: { role: "assistant", content, refusal: null },
      logprobs: null,
      finish_reason: "stop",
    },
  ],
  usage: { prompt_tokens: 250, completion_tokens: 200, total_tokens: 450 },
});

/** A running nginx. */
export interface Nginx {
  readonly child: ChildProcess;
  /** Replies as soon as it has the head of a request. */
  readonly json: number;
  /** Reads a body to its end first, as a vendor does; a small one costs it half as much again. */
  readonly large: number;
}

/** Starts nginx with its files in `folder`. */
export async function startNginx(folder: string): Promise<Nginx> {
  mkdirSync(folder);
  const [json, large] = [await freePort(), await freePort()];
  writeFileSync(join(folder, "nginx.conf"), configuration(json, large));
  const log = join(folder, "error.log");
  const command = ["nginx", "-p", folder, "-c", join(folder, "nginx.conf"), "-e", log];
  return { child: start(command, { core: "load" }), json, large };
}

function configuration(json: number, large: number): string {
  const kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  const reading = "root /dev/null; mirror /read; error_page 404 =200 @reply; log_not_found off;";
  return `
daemon off;
worker_processes 1;
pid nginx.pid;
events { worker_connections 4096; }
http {
  access_log off;
  default_type application/json;
  keepalive_requests 1000000000;
  keepalive_timeout 600s;
  client_max_body_size 8m;
  client_body_buffer_size 2m;
  add_header x-request-id req_bench;
${kinds.map((kind) => `  ${kind}_temp_path ${kind};`).join("\n")}
  server {
    listen 127.0.0.1:${json} backlog=4096;
    location / { return 200 '${reply}'; }
  }
  server {
    listen 127.0.0.1:${large} backlog=4096;
    # The mirrored request has the whole body read. No file is found then, which leads to the reply.
    location / { ${reading} }
    location = /read { internal; return 204; }
    location @reply { return 200 '${reply}'; }
  }
}
`;
}

/** Where and what wrk sends. */
export interface WrkLoad {
  readonly folder: string;
  readonly port: number;
  /** Empty: none is sent. */
  readonly key: string;
  readonly model: string;
  readonly scenario: Scenario;
  /** A whole number. */
  readonly seconds: number;
}

/** The requests that wrk had a reply to. */
export interface WrkResult {
  readonly requests: number;
  /** Replies with a status other than 2xx and 3xx; they are among `requests`. */
  readonly refused: number;
  /** Connections that broke, and requests without a reply. */
  readonly failed: number;
  readonly micros: number;
  readonly p50Micros: number;
  readonly p99Micros: number;
}

/** Sends requests in a closed loop. */
export async function runWrk(load: WrkLoad): Promise<WrkResult> {
  const { folder, port, key, model, scenario, seconds } = load;
  const body = join(folder, "wrk-body");
  writeFileSync(body, requestBody(scenario, model));
  const script = fileURLToPath(new URL("wrk.lua", import.meta.url));
  const options = ["-t1", `-c${scenario.connections}`, `-d${seconds}s`, "--timeout", "60s"];
  const url = `http://127.0.0.1:${port}${requestPath}`;
  const env = { BENCH_BODY: body, BENCH_KEY: key };
  const child = start(["wrk", ...options, "-s", script, url], {
    core: "load",
    env,
    stdio: ["ignore", "pipe", 2],
  });
  const closed = once(child, "close");
  const printed = child.stdout === null ? "" : await text(child.stdout);
  await closed;
  const line = printed.trimEnd().split("\n").at(-1) ?? "";
  if (!line.startsWith("{")) throw new Error(`wrk failed: ${printed}`);
  return JSON.parse(line) as WrkResult;
}
