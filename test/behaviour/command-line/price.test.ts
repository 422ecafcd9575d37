import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { ConfigService } from "../../../gen/uas/config/v1/config_service_pb.ts";
import { PriceState } from "../../../gen/uas/billing/v1/price_pb.ts";
import { run, runJson } from "./support.ts";

const time = "2026-11-21T09:30:00.000Z";
const createTime = timestampFromDate(new Date(time));

describe("price show", () => {
  const price = {
    input: "0.25",
    cachedInput: "0.025",
    output: "2",
    tiers: [{ above: 200_000, input: "0.5" }],
  };
  const costs = [
    {
      vendor: "acme",
      model: "big",
      versions: [
        { version: "d", state: PriceState.PAST, price: { input: "9", output: "9" } },
        {
          version: "c",
          state: PriceState.CURRENT,
          price: {
            input: "0.2",
            output: "2.5",
            request: "0.001",
            tiers: [{ above: 100, output: "3" }],
          },
        },
      ],
    },
  ];
  const routes = (router: ConnectRouter) =>
    void router.service(ConfigService, { getConfig: () => ({}) }).service(BillingService, {
      getPrice: ({ modelKey }) => ({
        prices: {
          modelKey,
          versions: [
            { version: "a", state: PriceState.PAST, loadTime: createTime, price: { input: "1" } },
            { version: "b", state: PriceState.CURRENT, price },
            { version: "e", state: PriceState.FUTURE, fromTime: createTime, price: { input: "3" } },
          ],
          costs,
        },
      }),
    });

  it("prints every version in order, and what vendors take", async () => {
    const { json } = await runJson(["price", "show", "m"], { routes });
    const units = { input: "0.25", cachedInput: "0.025", output: "2" };
    expect(json).toMatchObject({
      modelKey: "m",
      versions: [
        { version: "a", state: "past", from: null, loadedAt: time },
        {
          version: "b",
          state: "current",
          from: null,
          loadedAt: null,
          price: { units, tiers: [{ above: 200_000, units: { input: "0.5" } }] },
        },
        { version: "e", state: "future", from: time, price: { units: { input: "3" }, tiers: [] } },
      ],
      costs: [
        { vendor: "acme", model: "big", versions: [{ state: "past" }, { state: "current" }] },
      ],
    });
  });

  it("sets each unit beside what a vendor takes for it, defaults and tiers resolved", async () => {
    const { out } = await run(["price", "show", "m"], { routes });
    expect(out.split("\n")).toEqual([
      "UNIT                PER        PRICE  acme big",
      "input               1M tokens  0.25   0.2 (20 % left)",
      "cachedInput         1M tokens  0.025  0.2 (-700 % left)",
      "output              1M tokens  2      2.5 (-25 % left)",
      "request             request    -      0.001",
      "output above 100    1M tokens  2      3 (-50 % left)",
      "input above 200000  1M tokens  0.5    0.2 (60 % left)",
      "",
      "STATE    FROM                      FIRST LOADED              VERSION  USD",
      `past     -                         ${time}  a        input 1`,
      "current  -                         -                         b        input 0.25, cachedInput 0.025, output 2; above 200000 tokens: input 0.5",
      `future   ${time}  -                         e        input 3`,
      "",
    ]);
  });
});
