import { describe, expect, it } from "vitest";
import { anthropicFault } from "../../../src/provider/anthropic/index.ts";
import { geminiFault, geminiRetryAfter } from "../../../src/provider/gemini/faults.ts";
import { openaiFault } from "../../../src/provider/openai/faults.ts";

const bytes = (body: unknown): Buffer => Buffer.from(JSON.stringify(body));

/** Bodies that say nothing about the account, of any vendor. */
const silent = [
  "",
  "<html>",
  "null",
  "[]",
  "[1]",
  '{"error":"x"}',
  '{"error":{"code":1}}',
  '{"error":',
];

describe("R-ERR-3 openai: the operator's own trouble shows in the code, whatever the status", () => {
  const body = (error: object): Buffer => bytes({ error: { message: "m", param: null, ...error } });

  it.each([
    [429, { type: "insufficient_quota", code: "insufficient_quota" }, "money"],
    [429, { type: "insufficient_quota", code: null }, "money"],
    [400, { code: "billing_hard_limit_reached" }, "money"],
    [429, { code: "billing_not_active" }, "money"],
    [401, { code: "invalid_api_key" }, "credential"],
    [403, { type: "invalid_request_error", code: "model_not_found" }, "model"],
    [400, { type: "invalid_request_error", code: "model_not_found" }, "model"],
    [400, { type: "invalid_request_error", code: "context_length_exceeded" }, undefined],
    [429, { type: "requests", code: "rate_limit_exceeded" }, undefined],
  ] as const)("an OpenAI error shows the operator's own trouble: %i %j", (status, error, fault) => {
    expect(openaiFault(status, body(error))).toBe(fault);
  });

  it.each(silent)("an OpenAI error with %j is not the operator's trouble", (text) => {
    expect(openaiFault(400, Buffer.from(text))).toBeUndefined();
  });
});

describe("R-ERR-3 anthropic: an empty account comes as an invalid request", () => {
  const body = (type: string, message: string): Buffer =>
    bytes({ type: "error", error: { type, message }, request_id: "req_1" });
  const invalid = "invalid_request_error";
  const empty =
    "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.";

  it.each([
    [400, invalid, empty, "money"],
    [
      400,
      invalid,
      "You have reached your specified API usage limits. Back on 2026-12-01.",
      "money",
    ],
    [400, invalid, "You have reached your specified workspace API usage limits.", "money"],
    [400, invalid, "This organization has been disabled.", "credential"],
    [402, "billing_error", "m", "money"],
    [401, "authentication_error", "invalid x-api-key", "credential"],
    [400, invalid, "messages: text content blocks must be non-empty", undefined],
    [400, invalid, `echoed: ${empty}`, undefined],
    [529, "overloaded_error", "Overloaded", undefined],
    [413, "request_too_large", "Request exceeds the maximum size", undefined],
  ] as const)(
    "an Anthropic error shows the operator's own trouble: %i %s %j",
    (status, type, message, fault) => {
      expect(anthropicFault(status, body(type, message))).toBe(fault);
    },
  );

  it.each(silent)("an Anthropic error with %j is not the operator's trouble", (text) => {
    expect(anthropicFault(400, Buffer.from(text))).toBeUndefined();
  });
});

describe("R-ERR-3 gemini: a wrong key comes as an invalid argument", () => {
  const body = (status: string, message: string, details: unknown[] = []): Buffer =>
    bytes({ error: { code: 400, message, status, details } });
  const reason = (name: string): unknown => ({
    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
    reason: name,
    domain: "googleapis.com",
  });

  it.each([
    ["INVALID_ARGUMENT", "API key not valid.", [reason("API_KEY_INVALID")], "credential"],
    ["INVALID_ARGUMENT", "API key expired. Please renew the API key.", [], "credential"],
    ["PERMISSION_DENIED", "m", [{ "@type": "x" }, reason("SERVICE_DISABLED")], "credential"],
    ["PERMISSION_DENIED", "m", [reason("BILLING_DISABLED")], "money"],
    ["FAILED_PRECONDITION", "Please enable billing on your project.", [], "money"],
    ["FAILED_PRECONDITION", "User location is not supported for the API use.", [], "credential"],
    ["RESOURCE_EXHAUSTED", "Your prepayment credits are depleted.", [], "money"],
    ["RESOURCE_EXHAUSTED", "Your project has exceeded its monthly spending cap.", [], "money"],
    [
      "RESOURCE_EXHAUSTED",
      "You exceeded your current quota, check your billing details",
      [],
      undefined,
    ],
    ["INVALID_ARGUMENT", "Please use a valid role: user, model.", [], undefined],
    ["INVALID_ARGUMENT", "m", ["no object", null, { reason: 4 }], undefined],
    ["UNAVAILABLE", "The model is overloaded.", [], undefined],
  ] as const)(
    "a Gemini error shows the operator's own trouble: %s %j",
    (status, message, details, fault) => {
      const one = body(status, message, [...details]);
      expect(geminiFault(400, one)).toBe(fault);
      expect(geminiFault(400, Buffer.concat([Buffer.from("["), one, Buffer.from("]")]))).toBe(
        fault,
      );
    },
  );

  it.each(silent)("a Gemini error with %j is not the operator's trouble", (text) => {
    expect(geminiFault(400, Buffer.from(text))).toBeUndefined();
    expect(geminiRetryAfter(Buffer.from(text))).toBeUndefined();
  });

  it.each([
    ["21.5s", 22],
    ["0s", 1],
    ["1000000s", 86_400],
    ["soon", undefined],
    ["-3s", undefined],
  ] as const)("R-ERR-4 waits as RetryInfo says: %s", (retryDelay, seconds) => {
    const info = { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay };
    expect(geminiRetryAfter(body("RESOURCE_EXHAUSTED", "m", [reason("X"), info]))).toBe(seconds);
  });
});
