import type { ConnectRouter } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { TopUpSource } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { RedeemCodeState } from "../../../gen/uas/billing/v1/redeem_pb.ts";
import {
  type CreateRedeemCodesRequest,
  RedeemService,
} from "../../../gen/uas/billing/v1/redeem_service_pb.ts";
import { createTime, time, usd } from "./sample.ts";
import { run, runJson } from "./support.ts";

const redeemCode = {
  redeemCodeId: "id-1",
  hint: "64ZE",
  amount: usd(5_000_000_000n),
  source: TopUpSource.PROMO,
  state: RedeemCodeState.OPEN,
  createTime,
};

function world(asked: CreateRedeemCodesRequest[] = []) {
  return {
    routes: (router: ConnectRouter) =>
      void router.service(RedeemService, {
        createRedeemCodes: (request) => {
          asked.push(request);
          return { codes: ["AAAA-64ZE"], redeemCodes: [redeemCode] };
        },
        listRedeemCodes: () => ({ redeemCodes: [redeemCode] }),
        revokeRedeemCode: ({ redeemCodeId }) => ({
          redeemCode: { ...redeemCode, redeemCodeId, state: RedeemCodeState.REVOKED },
        }),
      }),
  };
}

it("redeem prints new codes this once, as grants unless they are sold", async () => {
  const asked: CreateRedeemCodesRequest[] = [];
  expect((await run(["redeem", "create", "5.00"], world(asked))).out).toBe("AAAA-64ZE\n");
  const options = ["--count", "3", "--sold", "--note", "fair", "--expires", "2030-01-31"];
  const { json } = await runJson(["redeem", "create", "5.00", ...options], world(asked));
  expect(json).toMatchObject([{ code: "AAAA-64ZE", redeemCodeId: "id-1", amount: "5" }]);
  expect(asked).toMatchObject([
    { count: 1, source: TopUpSource.PROMO, amount: usd(5_000_000_000n) },
    { count: 3, source: TopUpSource.PAYMENT, note: "fair" },
  ]);
  expect(asked[1]?.expireTime?.seconds).toBe(BigInt(Date.parse("2030-01-31") / 1_000));
});

it("redeem lists and revokes codes by their ids", async () => {
  const listed = await runJson(["redeem", "list"], world());
  expect(listed.json).toMatchObject([{ redeemCodeId: "id-1", state: "open", createdAt: time }]);
  const { out } = await run(["redeem", "revoke", "id-9"], world());
  expect(out).toMatch(/id-9 .*revoked/);
});
