/**
 * A simulated vendor that speaks chat completions over HTTP as OpenAI does, refuses what OpenAI
 * refuses, keeps every request, and answers as the test scripts it.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { answer, bytes } from "./behaviour.ts";
import {
  isObject,
  type Behaviour,
  type ChatBody,
  type Exchange,
  type RecordedRequest,
} from "./exchange.ts";
import { platformMembers, refusalOf, type Rules, violationsOf } from "./rules.ts";
import type { StrictStyle } from "./strict.ts";

/** Options of a simulation. */
export interface UpstreamOptions {
  /** The only credential it takes. Default: one that is easy to find in any output. */
  readonly secret?: string;
  /** The models it has. Default `vendor-model`. */
  readonly models?: readonly string[];
  /** Additional top-level members to refuse, besides the platform's names. Default none. */
  readonly refusedMembers?: readonly string[];
  /**
   * Speaks this style strictly, and answers as the conversation selects. Default: chat completions
   * that accept members unknown to OpenAI, and `answer()`.
   */
  readonly style?: StrictStyle;
}

/** A running simulation. */
export interface Upstream {
  /** The address for `base_url`, with `/v1`. */
  readonly baseUrl: string;
  /** The same without a path. */
  readonly origin: string;
  readonly secret: string;
  /** Every request since the start or the last {@link Upstream.clear}, oldest first. */
  readonly requests: readonly RecordedRequest[];
  /** Violations that reached the vendor. A test file ends with this empty. */
  readonly violations: readonly string[];
  /** Returns the newest request. Throws if there is none. */
  last(): RecordedRequest;
  /** Resolves with the request number `count` (from 1) since the last {@link Upstream.clear}. */
  request(count: number): Promise<RecordedRequest>;
  /** Answers the next requests so, in order; those after them as {@link Upstream.always} says. */
  script(...behaviours: readonly Behaviour[]): void;
  /** Answers all requests that are not scripted so. Default: `answer()`, or the style's own. */
  always(behaviour: Behaviour): void;
  /** Forgets requests and scripts, keeps violations. */
  clear(): void;
  close(): Promise<void>;
}

/** The credential of simulations if the test names none. */
export const vendorSecretDefault = "sk-vendor-canary-5e1c0ffee";

/** Starts a simulation on a free port of 127.0.0.1. */
export async function startUpstream(options: UpstreamOptions = {}): Promise<Upstream> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const simulation = new Simulation(
    host,
    {
      secret: options.secret ?? vendorSecretDefault,
      models: new Set(options.models ?? ["vendor-model"]),
      refusedMembers: new Set([...platformMembers, ...(options.refusedMembers ?? [])]),
      host,
    },
    options.style,
  );
  server.on("request", (request, response) => void simulation.onRequest(request, response));
  return Object.assign(simulation, {
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  });
}

class Simulation {
  readonly baseUrl: string;
  readonly origin: string;
  readonly secret: string;
  readonly requests: Recorded[] = [];
  readonly violations: string[] = [];
  readonly #rules: Rules;
  readonly #style: StrictStyle | undefined;
  readonly #script: Behaviour[] = [];
  #always: Behaviour;
  #arrivals: Array<() => void> = [];

  constructor(host: string, rules: Rules, style: StrictStyle | undefined) {
    this.origin = `http://${host}`;
    this.baseUrl = `${this.origin}/v1`;
    this.secret = rules.secret;
    this.#rules = rules;
    this.#style = style;
    this.#always = style?.answer ?? answer();
  }

  last(): RecordedRequest {
    const request = this.requests.at(-1);
    if (request === undefined) throw new Error("the vendor was not asked");
    return request;
  }

  async request(count: number): Promise<RecordedRequest> {
    for (;;) {
      const request = this.requests[count - 1];
      if (request !== undefined) return request;
      await new Promise<void>((resolve) => this.#arrivals.push(resolve));
    }
  }

  script(...behaviours: readonly Behaviour[]): void {
    this.#script.push(...behaviours);
  }

  always(behaviour: Behaviour): void {
    this.#always = behaviour;
  }

  clear(): void {
    this.requests.length = 0;
    this.#script.length = 0;
    this.#always = this.#style?.answer ?? answer();
  }

  async onRequest(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const recorded = new Recorded(incoming, response);
    try {
      await recorded.read(incoming);
    } catch {
      return;
    }
    this.requests.push(recorded);
    const style = this.#style;
    this.violations.push(...violationsOf(recorded, this.#rules, style?.ownHeaders));
    this.violations.push(...(style?.violationsOf(recorded) ?? []));
    for (const arrived of this.#arrivals.splice(0)) arrived();
    const refusal = style
      ? style.refusalOf(recorded, this.#rules)
      : lenientRefusalOf(recorded, this.#rules);
    const behaviour = refusal ?? this.#script.shift() ?? this.#always;
    // The signal shows a waiting behaviour that the gateway disconnected, which is no failure of
    // the test.
    await Promise.resolve(behaviour(recorded)).catch(() => {});
  }
}

/** Why the vendor that is not strict refuses, as its answer. */
function lenientRefusalOf(request: RecordedRequest, rules: Rules): Behaviour | undefined {
  const refusal = refusalOf(request, rules);
  if (refusal === undefined) return undefined;
  const { status, ...error } = refusal;
  return bytes(JSON.stringify({ error: { ...error, type: "invalid_request_error" } }), { status });
}

/** One request and its running exchange. */
class Recorded implements RecordedRequest, Exchange {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly rawHeaders: readonly string[];
  readonly response: ServerResponse;
  readonly left: Promise<boolean>;
  body = Buffer.alloc(0);
  json: ChatBody | undefined;
  written = 0;
  writtenBytes = 0;
  isBlocked = false;
  readonly #leave = new AbortController();

  constructor(incoming: IncomingMessage, response: ServerResponse) {
    this.method = incoming.method ?? "";
    this.url = incoming.url ?? "";
    this.headers = incoming.headers;
    this.rawHeaders = incoming.rawHeaders;
    this.response = response;
    this.left = new Promise((resolve) => {
      response.once("close", () => {
        const hasLeft = !response.writableFinished;
        if (hasLeft) this.#leave.abort();
        resolve(hasLeft);
      });
    });
    response.on("error", () => {});
  }

  get request(): RecordedRequest {
    return this;
  }

  get signal(): AbortSignal {
    return this.#leave.signal;
  }

  async read(incoming: IncomingMessage): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of incoming) pieces.push(piece as Buffer);
    this.body = Buffer.concat(pieces);
    try {
      const json: unknown = JSON.parse(this.body.toString());
      if (isObject(json)) this.json = json;
    } catch {
      this.json = undefined;
    }
  }

  async write(piece: Uint8Array): Promise<boolean> {
    if (this.signal.aborted) return false;
    this.written++;
    this.writtenBytes += piece.length;
    if (this.response.write(piece)) {
      // Lets the piece leave alone, so that pieces arrive as the test cut them.
      await new Promise((resolve) => setImmediate(resolve));
    } else {
      this.isBlocked = true;
      await new Promise<void>((resolve) => {
        const proceed = (): void => {
          this.response.off("drain", proceed);
          this.response.off("close", proceed);
          resolve();
        };
        this.response.on("drain", proceed);
        this.response.on("close", proceed);
      });
      this.isBlocked = false;
    }
    return !this.signal.aborted;
  }
}
