import { createHmac } from "node:crypto";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { freezePayload, type WebhookPayload } from "../../../src/webhook/payload.ts";
import { isInstalled, languages, signaturesOf } from "../../nightly/interop/languages.ts";
import { anyPayload } from "../../nightly/interop/payloads.ts";
import { goldenVectors } from "./golden.ts";

const plain: WebhookPayload = {
  callbackId: "order-1",
  status: "completed",
  progress: 100,
  resultUrl: null,
  resultContent: null,
  error: null,
  errorCode: null,
  usage: { promptTokens: 0, completionTokens: 0, totalTokens: 0 },
  time: new Date("2026-11-21T09:30:00.123Z"),
  facts: { eventId: "e", modelKey: "m", requestId: "r", sequence: 1, taskId: "t" },
};

/** Any payload, and sometimes one with a very long text in it. */
const sized = fc
  .tuple(anyPayload, fc.option(fc.integer({ min: 1, max: 300_000 }), { freq: 1 }))
  .map(([payload, length]) =>
    length === null
      ? payload
      : { ...payload, resultContent: "é".repeat(length), error: "x\u2028".repeat(length) },
  );

function parse({ bytes }: { readonly bytes: Buffer }): Record<string, unknown> {
  return JSON.parse(bytes.toString());
}

/** Everything inside of a value that breaks a rule of signature-safe JSON. */
function unsafe(value: unknown, depth = 1): string[] {
  if (typeof value === "string") {
    const isSafe =
      value.isWellFormed() &&
      // oxlint-disable-next-line no-control-regex
      !/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u2028\u2029]/.test(value);
    return isSafe ? [] : [`text ${JSON.stringify(value)}`];
  }
  if (typeof value === "number") return Number.isSafeInteger(value) ? [] : [`number ${value}`];
  if (value === null || typeof value !== "object") return [];
  const names = Array.isArray(value) ? [] : Object.keys(value);
  return [
    ...(depth > 8 ? ["depth"] : []),
    ...(Array.isArray(value) || names.length > 0 ? [] : ["empty object"]),
    ...names.filter((name) => !/^[a-z][a-zA-Z0-9_]*$/.test(name)).map((name) => `name ${name}`),
    ...(names.join("\0") === names.toSorted().join("\0") ? [] : [`order ${names.join()}`]),
    ...Object.values(value).flatMap((member) => unsafe(member, depth + 1)),
  ];
}

describe("R-HOOK-1: signature-safe JSON", () => {
  it("signature-safe JSON of any payload survives parsing and writing, and obeys every rule", () => {
    fc.assert(
      fc.property(sized, (payload) => {
        const frozen = freezePayload(payload);
        const text = frozen.bytes.toString();
        expect(JSON.stringify(JSON.parse(text))).toBe(text);
        expect(unsafe(JSON.parse(text))).toEqual([]);
        expect(frozen.bytes.length).toBeLessThanOrEqual(256 * 1024);
        expect(freezePayload(payload).bytes.equals(frozen.bytes)).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  it("R-HOOK-8: is marked exactly where a text was altered", () => {
    fc.assert(
      fc.property(sized, (payload) => {
        const frozen = freezePayload(payload);
        const body = parse(frozen) as { external_data: Record<string, unknown> } & Record<
          string,
          unknown
        >;
        const { result_altered: told, ...data } = body.external_data;
        expect(told).toBe(frozen.isResultAltered ? true : undefined);
        const isSame =
          body["result_content"] === payload.resultContent &&
          body["result_url"] === payload.resultUrl &&
          body["callback_id"] === payload.callbackId &&
          body["error"] === payload.error;
        if (!isSame) expect(told).toBe(true);
        if (payload.extra === undefined || Object.keys(payload.extra).length === 0) {
          const isShort = (payload.resultContent?.length ?? 0) < 1_000;
          if (isSame && isShort) expect(told).toBeUndefined();
        }
        const { facts } = payload;
        expect(data).toMatchObject({
          event_id: facts.eventId,
          task_id: facts.taskId,
          sequence: facts.sequence,
        });
        expect(data).toHaveProperty("model_key");
        expect(data).toHaveProperty("request_id");
      }),
      { numRuns: 150 },
    );
  });

  it("a result that is too long is left out first, then the other optional members", () => {
    const long = "é".repeat(140_000);
    expect(
      parse(freezePayload({ ...plain, resultContent: long, resultUrl: "https://f/r/1.txt" })),
    ).toMatchObject({
      result_content: null,
      result_url: "https://f/r/1.txt",
      external_data: { result_altered: true },
    });
    const extra = { vendor_payload: "x".repeat(250_000), vendor: "v" };
    const kept = parse(freezePayload({ ...plain, resultContent: long, extra }));
    expect(kept).toMatchObject({ result_content: null, external_data: { vendor: "v" } });
    const error = "😀".repeat(9_000);
    const dropped = freezePayload({
      ...plain,
      error,
      extra: { vendor_payload: "x".repeat(300_000) },
    });
    expect(parse(dropped)["external_data"]).not.toHaveProperty("vendor_payload");
    expect(String(parse(dropped)["error"])).toHaveLength(8_192);
    const fits = freezePayload({ ...plain, resultContent: "x".repeat(261_000) });
    expect(fits.isResultAltered).toBe(false);
  });

  it("values that are nested too deeply, or no safe numbers, become texts", () => {
    const deep = { a: { b: { c: { d: { e: { f: { g: { h: [1] } } } } } } } };
    const extra = { deep, half: 0.5, big: 2 ** 53, nothing: {}, list: [], negative: -0 };
    const data = parse(freezePayload({ ...plain, extra }))["external_data"];
    expect(data).toMatchObject({
      half: "0.5",
      big: "9007199254740992",
      nothing: null,
      list: [],
      negative: 0,
    });
    expect(JSON.stringify(data)).toContain('"f":"{\\"g\\":{\\"h\\":[1]}}"');
  });
});

describe("golden vectors", () => {
  it.each(goldenVectors)(
    "the golden vector is written byte for byte: $name",
    ({ payload, body, isAltered }) => {
      const frozen = freezePayload(payload);
      expect(frozen.bytes.toString()).toBe(body);
      expect(frozen.isResultAltered).toBe(isAltered);
    },
  );

  const installed = languages.filter(({ name }) => /^(Node|Python)/.test(name)).filter(isInstalled);
  it.each(installed)("R-HOOK-1: verify in $name after parsing and writing", async (language) => {
    const random = fc
      .sample(anyPayload, { numRuns: 200, seed: 7 })
      .map((payload) => freezePayload(payload).bytes);
    const bodies = [...goldenVectors.map(({ body }) => Buffer.from(body)), ...random];
    const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=";
    const expected = bodies.map((body) => createHmac("sha256", secret).update(body).digest("hex"));
    expect(await signaturesOf(language, secret, bodies)).toEqual(expected);
  });
});
