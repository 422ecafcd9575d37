/** Which models a caller sees and may call (R-AUTH-5, R-MDL-1). */
import { describe, expect, it } from "vitest";
import { CancelBilling, ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { Caller } from "../../../src/core/caller.ts";
import type { ModelConfig } from "../../../src/config/config.ts";
import { ErrorCode, GatewayError } from "../../../src/core/errors.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { createCatalogue, modelMessage } from "../../../src/calls/catalogue.ts";
import { always, priceDefault } from "../../support/gateway.ts";

function model(key: string): ModelConfig {
  return {
    key,
    name: `Name of ${key}`,
    type: ModelType.TEXT,
    routes: [{ vendor: "v", model: "m" }],
    maxOutputTokens: 99,
    holdOutputTokens: 99,
    prices: always(priceDefault),
  };
}

function caller(models?: string[]): Caller {
  const only = models && new Set(models);
  return { kind: "key", accountId: "a", keyId: "k", models: only };
}

const all = ["b", "a/b", "Z", "a"];
const facts = { offeredSince: () => undefined, clock: systemClock };

const catalogue = createCatalogue({ models: new Map(all.map((key) => [key, model(key)])) });

function refusal(who: Caller, key: string): GatewayError {
  try {
    catalogue.authorize(who, key);
  } catch (error) {
    if (error instanceof GatewayError) return error;
  }
  throw new Error("it was not refused");
}

function listed(who: Caller): string[] {
  return catalogue.list(who).map(({ key }) => key);
}

describe("the catalogue", () => {
  it("the catalogue refuses to generate text with models of other types (R-ERR-7)", () => {
    const picture = { ...model("picture"), type: ModelType.IMAGE };
    const both = createCatalogue({
      models: new Map([...all.map((key) => model(key)), picture].map((m) => [m.key, m])),
    });
    expect(both.authorizeText(caller(), "a").key).toBe("a");
    expect(both.authorize(caller(), "picture").key).toBe("picture");
    const refused = expect.objectContaining({
      code: ErrorCode.INVALID_REQUEST,
      param: "model",
      message: expect.stringContaining("/api/ai/tasks"),
    });
    expect(() => both.authorizeText(caller(), "picture")).toThrow(refused);
    const denied = expect.objectContaining({ code: ErrorCode.ACCESS_DENIED });
    expect(() => both.authorizeText(caller(["a"]), "picture")).toThrow(denied);
  });

  it("the catalogue lists every model sorted by key, whatever the order of the file", () => {
    expect(listed(caller())).toEqual(["Z", "a", "a/b", "b"]);
  });

  it("the catalogue lists exactly the models that the key may use, without unknown names (R-AUTH-5)", () => {
    expect(listed(caller(["b", "Z", "gone"]))).toEqual(["Z", "b"]);
    expect(listed(caller([]))).toEqual([]);
  });

  it("authorizes the listed models and no others (R-MDL-1)", () => {
    const some = caller(["a/b"]);
    for (const key of all) {
      if (listed(some).includes(key)) expect(catalogue.authorize(some, key).key).toBe(key);
      else expect(refusal(some, key)).toMatchObject({ code: ErrorCode.ACCESS_DENIED });
    }
  });

  it("the catalogue answers 404 for an unknown model, also to a key that is limited to its name (R-MDL-1)", () => {
    for (const key of ["", "none", "__proto__", "constructor", "A", " a", "a/"]) {
      const error = refusal(caller([key]), key);
      expect(error).toMatchObject({ code: ErrorCode.MODEL_NOT_FOUND, param: "model" });
      expect(error.message).toContain(`\`${key}\``);
      expect(error.message).toContain("GET /v1/models");
    }
  });

  it("the catalogue repeats at most 100 characters of an unknown name", () => {
    expect(refusal(caller(), "x".repeat(10_000)).message.length).toBeLessThan(250);
  });

  it("the catalogue shows prices in USD, and only those that are charged", () => {
    expect(modelMessage(model("a"), facts)).toMatchObject({
      modelKey: "a",
      name: "Name of a",
      maxOutputTokens: 99,
      price: { input: "0.25", cachedInput: "0.025", output: "2", image: "", request: "" },
    });
  });

  it("the catalogue shows the deadline and the cancel billing of a model, also where the configuration has none", () => {
    const plain = { deadline: { seconds: 1_800n, nanos: 0 }, cancelBilling: CancelBilling.NONE };
    expect(modelMessage(model("a"), facts)).toMatchObject(plain);
    const said = { deadlineMs: 5, cancelBilling: CancelBilling.UPSTREAM };
    expect(modelMessage({ ...model("a"), ...said }, facts)).toMatchObject({
      deadline: { seconds: 0n, nanos: 5_000_000 },
      cancelBilling: CancelBilling.UPSTREAM,
    });
  });
});
