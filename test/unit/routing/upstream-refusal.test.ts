/** Meaning of a vendor's refusal for the customer: the whole table, status by status. */
import * as fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  failureError,
  readRefusal,
  retryAfterSeconds,
} from "../../../src/routing/upstream-refusal.ts";

afterEach(() => vi.useRealTimers());

const json = { "content-type": "application/json; charset=utf-8" };

function read(
  status: number,
  body = '{"error":{}}',
  headers: Record<string, string> = json,
  fault?: "credential" | "money" | "model",
) {
  return readRefusal({
    status,
    headers,
    body: Buffer.from(body),
    fault,
    retryAfter: retryAfterSeconds(headers),
  });
}

/** Status and code for the customer, alarm for the operator, whether another route may be tried. */
type Row = [vendorStatus: number, body: string, says: string, alarm: string | undefined];

const quota = '{"error":{"code":"insufficient_quota"}}';
const hardLimit = '{"error":{"code":"billing_hard_limit_reached"}}';

const refused: Row[] = [
  [401, "{}", "503 service_unavailable", "credential"],
  [402, "{}", "503 service_unavailable", "money"],
  [403, "{}", "503 service_unavailable", "credential"],
  [404, "{}", "502 upstream_error", "model"],
  [408, "{}", "502 upstream_error", undefined],
  [409, "{}", "502 upstream_error", undefined],
  [418, "{}", "502 upstream_error", undefined],
  [429, "{}", "429 rate_limit_exceeded", undefined],
  [429, quota, "503 service_unavailable", "money"],
  [429, hardLimit, "503 service_unavailable", "money"],
  [500, "{}", "502 upstream_error", undefined],
  [500, quota, "502 upstream_error", undefined],
  [502, "{}", "502 upstream_error", undefined],
  [503, "{}", "503 upstream_overloaded", undefined],
  [504, "{}", "504 upstream_timeout", undefined],
  [529, "{}", "503 upstream_overloaded", undefined],
  [301, "{}", "502 upstream_error", undefined],
];

describe("a vendor's refusal (R-ERR-3, R-ERR-4)", () => {
  it.each(refused)(
    "a vendor's refusal with %i %s is %s here, alarm %s",
    (status, body, says, alarm) => {
      const refusal = read(status, body);
      const { meaning } = refusal.error;
      expect(`${meaning.status} ${meaning.word}`).toBe(says);
      expect(refusal).toMatchObject({ isRelayed: false, canRetry: true, alarm });
    },
  );

  it.each([
    [400, "400 invalid_request"],
    [413, "413 request_too_large"],
    [415, "415 unsupported_media_type"],
    [422, "400 invalid_request"],
  ])("a vendor's refusal with %i in JSON is relayed, and recorded as %s", (status, says) => {
    const { isRelayed, error, canRetry, alarm } = read(status);
    expect({ isRelayed, canRetry, alarm }).toEqual({
      isRelayed: true,
      canRetry: false,
      alarm: undefined,
    });
    expect(`${error.meaning.status} ${error.meaning.word}`).toBe(says);
  });

  it.each([
    ["a page", "<html>", { "content-type": "text/html" }],
    ["no content type", "{}", {}],
    ["no body", "", json],
  ])(
    "400 with %s is not an answer in the dialect: reported as an error of the gateway",
    (_what, body, headers) => {
      expect(read(400, body, headers)).toMatchObject({ isRelayed: false, canRetry: false });
    },
  );

  it("a vendor's refusal never shows the customer the vendor's refusal of the gateway's account", () => {
    const secret = "sk-operators-own";
    fc.assert(
      fc.property(fc.integer({ min: 300, max: 599 }), fc.string(), (status, text) => {
        const { isRelayed, error } = read(status, `${text}${secret}`);
        expect([401, 402, 403]).not.toContain(error.meaning.status);
        if (isRelayed) expect([400, 413, 415, 422]).toContain(status);
        expect(`${error.message}${error.internal}`).not.toContain(secret);
        if ([429, 503].includes(error.meaning.status)) {
          expect(error.retryAfterSeconds).toBeGreaterThanOrEqual(1);
        }
      }),
    );
  });

  it("a vendor's refusal passes the vendor's retry-after on", () => {
    const headers = { ...json, "retry-after": "17" };
    for (const status of [429, 503, 529]) {
      expect(read(status, "{}", headers).error.retryAfterSeconds).toBe(17);
      expect(read(status).error.retryAfterSeconds).toBe(1);
    }
    // Its word about our own account is not the customer's time.
    expect(read(429, quota, headers).error.retryAfterSeconds).toBe(30);
  });
});

describe("retry-after", () => {
  it.each<[what: string, headers: Record<string, string>, seconds: number | undefined]>([
    ["nothing", {}, undefined],
    ["seconds", { "retry-after": "20" }, 20],
    ["a fraction", { "retry-after": "0.2" }, 1],
    ["zero", { "retry-after": "0" }, 1],
    ["milliseconds first", { "retry-after": "20", "retry-after-ms": "1500" }, 2],
    ["milliseconds that are none", { "retry-after": "20", "retry-after-ms": "soon" }, 20],
    ["empty milliseconds", { "retry-after": "20", "retry-after-ms": "" }, 20],
    ["a date", { "retry-after": "Thu, 01 Jan 2026 00:00:30 GMT" }, 30],
    ["a date that has passed", { "retry-after": "Thu, 01 Jan 2015 00:00:00 GMT" }, 1],
    ["more than a day", { "retry-after": "999999999" }, 86_400],
    ["infinity", { "retry-after-ms": "Infinity" }, undefined],
    ["words", { "retry-after": "later" }, undefined],
    ["a negative number", { "retry-after": "-5" }, undefined],
    ["negative milliseconds", { "retry-after-ms": "-5" }, undefined],
  ])("the retry-after of %s is read", (_what, headers, seconds) => {
    vi.useFakeTimers({ now: Date.parse("2026-01-01T00:00:00Z") });
    expect(retryAfterSeconds(headers)).toBe(seconds);
  });

  it("is absent, or whole seconds from one to a day, whatever the vendor sends", () => {
    const text = fc.oneof(fc.string(), fc.double().map(String), fc.date().map(String));
    fc.assert(
      fc.property(text, text, (plain, ms) => {
        const seconds = retryAfterSeconds({ "retry-after": plain, "retry-after-ms": ms });
        if (seconds === undefined) return;
        expect(Number.isInteger(seconds)).toBe(true);
        expect(seconds).toBeGreaterThanOrEqual(1);
        expect(seconds).toBeLessThanOrEqual(86_400);
      }),
    );
  });
});

describe("a call without a reply (R-ERR-4)", () => {
  it.each([
    ["connect", "502 upstream_error"],
    ["reset", "502 upstream_error"],
    ["aborted", "502 upstream_error"],
    ["timeout", "504 upstream_timeout"],
    ["connect_timeout", "504 upstream_timeout"],
  ] as const)("a call without a reply (%s) is %s, and its cause is only logged", (kind, says) => {
    const cause = new Error("10.0.0.7 refused");
    const error = failureError(kind, cause);
    expect(`${error.meaning.status} ${error.meaning.word}`).toBe(says);
    expect(error.cause).toBe(cause);
    expect(error.message).not.toContain("10.0.0.7");
  });
});

describe("a cause that the vendor's body names wins over its status (R-ERR-3)", () => {
  it.each([
    ["credential", "503 service_unavailable"],
    ["money", "503 service_unavailable"],
    ["model", "502 upstream_error"],
  ] as const)("a 400 that means %s", (fault, says) => {
    const { isRelayed, error, alarm, canRetry } = read(400, "{}", json, fault);
    expect(`${error.meaning.status} ${error.meaning.word}`).toBe(says);
    expect({ isRelayed, alarm, canRetry }).toEqual({
      isRelayed: false,
      alarm: fault,
      canRetry: true,
    });
  });
});
