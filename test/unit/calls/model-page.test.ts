/** Pages of the model list: each model once, in both directions (R-TXT-7). */
import { create } from "@bufbuild/protobuf";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ListModelsRequestSchema } from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { ModelConfig } from "../../../src/config/config.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { GatewayError } from "../../../src/core/errors.ts";
import { modelPage } from "../../../src/calls/catalogue.ts";
import { always, priceDefault } from "../../support/gateway.ts";

type Ask = { pageSize?: number; pageToken?: string; afterKey?: string; beforeKey?: string };

function modelsOf(keys: readonly string[]): ModelConfig[] {
  const prices = always(priceDefault);
  const rest = {
    type: ModelType.TEXT,
    routes: [],
    maxOutputTokens: 9,
    holdOutputTokens: 9,
    prices,
  };
  return keys.map((key) => ({ key, name: key, ...rest }));
}

const facts = { offeredSince: () => undefined, clock: systemClock };

function page(keys: readonly string[], ask: Ask) {
  const got = modelPage(modelsOf(keys), create(ListModelsRequestSchema, ask), facts);
  return { ...got, keys: got.models.map(({ modelKey }) => modelKey) };
}

const keyLists = fc
  .uniqueArray(fc.string({ minLength: 1, maxLength: 3 }), { maxLength: 12 })
  .map((keys) => keys.toSorted((a, b) => (a < b ? -1 : 1)));
const sizes = fc.integer({ min: 1, max: 5 });

describe("pages of the model list", () => {
  it("have each model once, in order, forward by key and by token", () => {
    fc.assert(
      fc.property(keyLists, sizes, fc.boolean(), (keys, pageSize, byToken) => {
        const seen: string[] = [];
        let got = page(keys, { pageSize });
        for (;;) {
          seen.push(...got.keys);
          expect(got.hasMore).toBe(got.nextPageToken !== "");
          if (!got.hasMore) break;
          const afterKey = got.keys.at(-1) ?? "";
          got = page(keys, {
            pageSize,
            ...(byToken ? { pageToken: got.nextPageToken } : { afterKey }),
          });
        }
        expect(seen).toEqual(keys);
      }),
    );
  });

  it("have each model once, in order, backward", () => {
    fc.assert(
      fc.property(keyLists, sizes, (keys, pageSize) => {
        const seen: string[] = [];
        let beforeKey = "\uffff\uffff";
        for (;;) {
          const got = page(keys, { pageSize, beforeKey });
          seen.unshift(...got.keys);
          expect(got.nextPageToken).toBe("");
          if (!got.hasMore) break;
          beforeKey = got.keys[0] ?? "";
        }
        expect(seen).toEqual(keys);
      }),
    );
  });

  it("may begin at a key that no model has", () => {
    expect(page(["a", "c"], { afterKey: "b" }).keys).toEqual(["c"]);
    expect(page(["a", "c"], { beforeKey: "b" }).keys).toEqual(["a"]);
  });

  it.each<Ask>([
    { afterKey: "a", beforeKey: "b" },
    { pageToken: "MTph", afterKey: "a" },
    { pageToken: "MTph", beforeKey: "a" },
    { pageToken: "x" },
  ])("the page %j of the model list is refused", (ask) => {
    expect(() => page(["a"], ask)).toThrow(GatewayError);
  });
});
