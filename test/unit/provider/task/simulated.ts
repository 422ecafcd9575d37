/**
 * A vendor of tasks on a real socket, as strict as the real one: it refuses the same requests,
 * records the started work, and fails on demand like networks and vendors do.
 */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { JsonObject } from "@bufbuild/protobuf";

/** A request as it arrived. */
export interface TaskArrived {
  readonly method: string;
  /** Path and query, as on the wire. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** Undefined if it has no body. */
  readonly json: JsonObject | undefined;
}

/** An answer. */
export interface TaskAnswer {
  readonly status: number;
  readonly body: JsonObject | string | Buffer;
  /** Default: JSON. */
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the vendor has begun work that is paid. Default false. */
  readonly isWork?: boolean;
}

/** Failure of the next request. */
export type Mishap =
  /** The vendor takes it and works, and its answer is lost. */
  | "lose"
  /** An answer that does not come from the vendor. */
  | TaskAnswer;

/** A vendor that runs. */
export interface SimulatedVendor {
  /** Its origin, without a trailing slash. */
  readonly origin: string;
  /** Every request, in order. */
  readonly arrived: TaskArrived[];
  /** Number of tasks that it has begun. */
  readonly begun: () => number;
  /** Says how the next request goes. */
  next(mishap: Mishap): void;
  close(): Promise<void>;
}

/** Starts one; `answer` is how it behaves if nothing goes wrong. */
export async function startVendor(
  answer: (request: TaskArrived, origin: string) => TaskAnswer,
): Promise<SimulatedVendor> {
  const arrived: TaskArrived[] = [];
  const mishaps: Mishap[] = [];
  let begun = 0;
  let origin = "";
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      const text = Buffer.concat(pieces).toString();
      const { method = "", url = "", headers } = request;
      const json = text === "" ? undefined : (JSON.parse(text) as JsonObject);
      const one = { method, url, headers, json };
      arrived.push(one);
      const mishap = mishaps.shift();
      const said = typeof mishap === "object" ? mishap : answer(one, origin);
      if (said.isWork === true) begun += 1;
      if (mishap === "lose") response.destroy();
      else write(response, said);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    origin,
    arrived,
    begun: () => begun,
    next: (mishap) => void mishaps.push(mishap),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function write(response: ServerResponse, { status, body, type, headers }: TaskAnswer): void {
  const isBytes = typeof body === "string" || Buffer.isBuffer(body);
  response.writeHead(status, { "content-type": type ?? "application/json", ...headers });
  response.end(isBytes ? body : JSON.stringify(body));
}

/** Rule for a member of a request: a type's name, or one of several values. */
export type Rule =
  | "string"
  | "strings"
  | "integer"
  | "number"
  | "object"
  | readonly (string | number)[];

/** The first member that an object may not have, or that is not as it must be. */
export function wrongMember(
  object: JsonObject,
  rules: Readonly<Record<string, Rule>>,
): { readonly name: string; readonly isUnknown: boolean } | undefined {
  for (const [name, value] of Object.entries(object)) {
    const rule = rules[name];
    if (rule === undefined) return { name, isUnknown: true };
    if (!follows(value, rule)) return { name, isUnknown: false };
  }
  return undefined;
}

function follows(value: unknown, rule: Rule): boolean {
  if (typeof rule !== "string") return rule.includes(value as string);
  if (rule === "strings") {
    return Array.isArray(value) && value.every((each) => typeof each === "string");
  }
  if (rule === "integer") return Number.isInteger(value);
  return typeof value === rule && value !== null;
}

/** A member's text; empty if it is none. */
export function textIn(value: unknown): string {
  return typeof value === "string" ? value : "";
}
