/**
 * 1,000 streams whose clients vanish at a random byte: each has a record, and is charged what the
 * policy says, to the nano-USD (R-TXT-9, R-MON-8). What that is, is added up here from what the
 * vendor sent.
 */
import { request as httpRequest } from "node:http";
import { expect, it } from "vitest";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { priceDefault } from "../../support/gateway.ts";
import { delivered } from "../../support/sdk-streams.ts";
import { modelOf, type Policy, useStyleGateway } from "../../support/style-gateway.ts";
import { heldBack } from "../../support/upstream/held-back.ts";
import { tokens } from "../../support/upstream/scenario.ts";
import { detachedReplies } from "./leaver.ts";
import {
  type Caller,
  callerPaths,
  callerRequest,
  reportedCost,
  strictAnswer,
} from "./vanishing.ts";

const fixture = useStyleGateway();

const styles = ["chat", "responses", "messages"] as const;
const streamCount = 1_000;
/** At once. */
const batchSize = 40;
const seed = 20_261_121;

/** Course of one stream. */
interface Plan {
  readonly number: number;
  readonly caller: Caller;
  readonly vendor: (typeof styles)[number];
  readonly policy: Policy;
  /**
   * Where the vendor is when the client leaves, as a part of its bytes; below 0: before its head.
   */
  readonly part: number;
}

/** One of them while it runs. */
interface Stream extends Plan {
  readonly body: string;
  readonly requestId: string;
  /** Bytes that the vendor sent before the client disconnected. */
  sent: Buffer;
  /** Resolves when the gateway has left the vendor. */
  left: Promise<boolean>;
  /** Lets the vendor go on. */
  readonly open: () => void;
  readonly until: Promise<void>;
}

/** Mulberry32: the same numbers each time. */
function randomFrom(start: number): () => number {
  let state = start;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function plans(): Plan[] {
  const random = randomFrom(seed);
  const one = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T;
  return Array.from({ length: streamCount }, (_, number) => ({
    number,
    caller: one(styles),
    vendor: one(styles),
    policy: one(["abort", "drain"] as const),
    part: random() < 0.05 ? -1 : random(),
  }));
}

function begin(plan: Plan): Stream {
  const { promise: until, resolve: open } = Promise.withResolvers<void>();
  const { caller, vendor, policy, number } = plan;
  const text = `greet #${number}#`;
  const body = callerRequest(caller, { model: modelOf(vendor, policy), stream: true, text });
  const requestId = `vanish-${seed}-${number}`;
  const left = Promise.resolve(false);
  return {
    ...plan,
    body: JSON.stringify(body),
    requestId,
    sent: Buffer.alloc(0),
    left,
    open,
    until,
  };
}

/** The whole events among what a vendor sent. */
function wholeEvents({ sent }: Stream): string {
  const text = sent.toString();
  return text.slice(0, text.lastIndexOf("\n\n") + 2);
}

/** Asks, and leaves as soon as all is there that the vendor has sent so far. */
async function vanish(stream: Stream, key: string, asked: Promise<void>): Promise<void> {
  const url = new URL(callerPaths[stream.caller], fixture.gateway.url);
  const headers = {
    authorization: `Bearer ${key}`,
    "content-type": "application/json",
    "x-request-id": stream.requestId,
  };
  const request = httpRequest(url, { method: "POST", headers, agent: false });
  const closed = new Promise<void>((resolve) => request.once("close", resolve));
  request.on("error", () => {});
  let got = "";
  const headed = new Promise<void>((resolve) => {
    request.on("response", (response) => {
      response.on("error", () => {});
      response.setEncoding("utf8").on("data", (piece: string) => {
        got += piece;
        resolve();
        onBytes();
      });
      resolve();
    });
  });
  let onBytes = (): void => {};
  request.end(stream.body);
  await asked;
  if (stream.part >= 0) {
    const wanted = delivered(stream.vendor, wholeEvents(stream)).text;
    // The head comes with the first content.
    if (wanted !== "") await headed;
    while (delivered(stream.caller, got).text !== wanted) {
      await new Promise<void>((resolve) => {
        onBytes = resolve;
      });
    }
  }
  request.destroy();
  await closed;
}

const price = {
  input: priceDefault.input ?? 0n,
  cached: priceDefault.cachedInput ?? 0n,
  written: priceDefault.cacheWrite ?? 0n,
  output: priceDefault.output ?? 0n,
};

/** Returns the charge by the policy. */
function expectedCost(stream: Stream): bigint {
  if (stream.policy === "drain") return reportedCost;
  const events = wholeEvents(stream);
  // The vendor has reported all that it will charge.
  if (/"(?:completion_tokens|output_tokens)":15\b/.test(events)) return reportedCost;
  const bytes = Buffer.byteLength(delivered(stream.vendor, events).text);
  const made = BigInt(Math.ceil(bytes / 4)) * price.output;
  // The vendor has the whole request, so its input is charged (R-MON-11). Messages reports its
  // input first; the other styles have reported nothing yet.
  const { input, cached, written } = tokens;
  const read =
    stream.vendor === "messages" && events.includes("message_start")
      ? BigInt(input - cached - written) * price.input +
        BigInt(cached) * price.cached +
        BigInt(written) * price.written
      : BigInt(Math.ceil(Buffer.byteLength(stream.body) / 4)) * price.input;
  return (read + made) / 1_000_000n;
}

const drained = (): Promise<number> => detachedReplies(fixture.gateway);

it(`charges ${streamCount} streams as the policy says (seed ${seed})`, async () => {
  const { gateway } = fixture;
  const { key, accountId } = await gateway.customer();
  const running = new Map<number, { readonly stream: Stream; readonly onSent: () => void }>();
  for (const vendor of styles) {
    fixture.upstream(vendor).always(async (exchange) => {
      const number = Number(/#(\d+)#/.exec(exchange.request.body.toString())?.[1]);
      const { stream, onSent } = running.get(number) ?? {};
      if (stream === undefined || onSent === undefined) throw new Error(`no stream ${number}`);
      stream.left = exchange.request.left;
      if (stream.part < 0) onSent();
      const told = (sent: Buffer): void => {
        stream.sent = sent;
        onSent();
      };
      const { part, until } = stream;
      await heldBack(strictAnswer(vendor), { part, until, onSent: told })(exchange);
    });
  }
  const all = plans();
  let sum = 0n;
  for (let at = 0; at < all.length; at += batchSize) {
    const streams = all.slice(at, at + batchSize).map(begin);
    await Promise.all(
      streams.map((stream) => {
        const { promise, resolve } = Promise.withResolvers<void>();
        running.set(stream.number, { stream, onSent: resolve });
        return vanish(stream, key, promise);
      }),
    );
    // No vendor goes on before the gateway knows that its client has left.
    const isDrained = ({ policy }: Stream): boolean => policy === "drain";
    const waiting = streams.filter(isDrained).length;
    await expect.poll(drained).toBe(waiting);
    for (const stream of streams) {
      if (!isDrained(stream)) expect(await stream.left).toBe(true);
      stream.open();
    }
    for (const stream of streams) {
      const [call, ...more] = await gateway.calls(stream.requestId, 1);
      expect(more).toEqual([]);
      const { number, caller, vendor, policy, part } = stream;
      const what = `${number}: ${caller} from ${vendor}, ${policy}, at ${part}`;
      expect(call?.ending, what).toBe(CallEnding.CLIENT_GONE);
      expect(call?.cost?.amountNanos, what).toBe(expectedCost(stream));
      sum += expectedCost(stream);
    }
  }
  expect(await gateway.money(accountId)).toEqual({
    balance: 100_000_000_000n - sum,
    available: 100_000_000_000n - sum,
    held: 0n,
  });
}, 60_000);
