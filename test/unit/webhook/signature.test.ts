import { createHmac } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { describe, expect, it } from "vitest";
import { newSecret, signatureHeaders } from "../../../src/webhook/signature.ts";

const body = Buffer.from('{"callback_id":"é","error":null}');
const eventId = "01890000-0000-7000-8000-000000000001";

describe("webhook signatures", () => {
  it("R-HOOK-9: a secret is whsec_ and 32 random bytes in base64", () => {
    const secrets = Array.from({ length: 50 }, newSecret);
    expect(new Set(secrets).size).toBe(50);
    for (const secret of secrets) {
      expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
      expect(Buffer.from(secret.slice(6), "base64")).toHaveLength(32);
    }
  });

  it("R-HOOK-1: the specification's recipe verifies", () => {
    const secret = newSecret();
    const time = new Date("2026-11-21T09:30:00.123Z");
    const headers = signatureHeaders(
      { eventId, body, time },
      { current: secret, other: undefined },
    );
    // As the specification writes it: HMAC-SHA256 with the secret over the compact JSON, in
    // lower-case hex.
    const text = JSON.stringify(JSON.parse(body.toString()));
    expect(headers["x-ai-service-signature"]).toBe(
      createHmac("sha256", secret).update(text).digest("hex"),
    );
    expect(headers["x-ai-service-timestamp"]).toBe("2026-11-21T09:30:00.123Z");
    expect(headers).not.toHaveProperty("x-ai-service-signature-secondary");
  });

  it("R-HOOK-2: the library of Standard Webhooks verifies, and refuses another body, secret or time", () => {
    const secret = newSecret();
    const sign = (time: Date) =>
      signatureHeaders({ eventId, body, time }, { current: secret, other: undefined });
    const headers = sign(new Date());
    expect(new Webhook(secret).verify(body.toString(), headers)).toEqual({
      callback_id: "é",
      error: null,
    });
    expect(() => new Webhook(secret).verify('{"callback_id":"x"}', headers)).toThrow("matching");
    expect(() => new Webhook(newSecret()).verify(body.toString(), headers)).toThrow("matching");
    const old = sign(new Date(Date.now() - 301_000));
    expect(() => new Webhook(secret).verify(body.toString(), old)).toThrow("old");
    const other = { ...headers, "webhook-id": "another" };
    expect(() => new Webhook(secret).verify(body.toString(), other)).toThrow("matching");
  });

  it("R-HOOK-9: webhooks verify with both secrets during a rotation", () => {
    const [current, other] = [newSecret(), newSecret()];
    const headers = signatureHeaders({ eventId, body, time: new Date() }, { current, other });
    for (const secret of [current, other]) new Webhook(secret).verify(body.toString(), headers);
    expect(headers["webhook-signature"]?.split(" ")).toHaveLength(2);
    const hex = (secret: string): string => createHmac("sha256", secret).update(body).digest("hex");
    expect(headers["x-ai-service-signature"]).toBe(hex(current));
    expect(headers["x-ai-service-signature-secondary"]).toBe(hex(other));
  });
});
