/** `uas vendor …`: what vendors' models were marked for, and the clearing of it. */
import type { ConnectRouter } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { OperatorService } from "../../../gen/uas/operator/v1/operator_service_pb.ts";
import { createTime, keyId, time } from "./sample.ts";
import { run, runJson } from "./support.ts";

describe("vendors' models that ignore the output limit of a request", () => {
  const cleared: unknown[] = [];
  const routes = (router: ConnectRouter) =>
    void router.service(OperatorService, {
      listVendors: ({ pageToken }) =>
        pageToken === ""
          ? { vendors: [{ vendor: "quiet" }], nextPageToken: "more" }
          : {
              vendors: [
                {
                  vendor: "sim",
                  unlimitedModels: [
                    {
                      model: "big",
                      callId: keyId,
                      limitTokens: 1n,
                      outputTokens: 4_096n,
                      createTime,
                    },
                  ],
                },
              ],
            },
      clearUnlimitedModel: ({ vendor, model }) => {
        cleared.push([vendor, model]);
        return {};
      },
    });

  it("are listed with the call that showed it, of all pages of vendors", async () => {
    const { json } = await runJson(["vendor", "unlimited"], { routes });
    expect(json).toEqual([
      {
        vendor: "sim",
        model: "big",
        callId: keyId,
        limitTokens: 1,
        outputTokens: 4_096,
        createTime: time,
      },
    ]);
    const { out } = await run(["vendor", "unlimited"], { routes });
    expect(out).toMatch(/^VENDOR +MODEL +LIMIT +OUTPUT +CALL +SINCE\nsim +big +1 +4096 +/);
  });

  it("are cleared by the vendor's name and the vendor's name of the model", async () => {
    const { json } = await runJson(["vendor", "clear-unlimited", "sim", "big"], { routes });
    expect(json).toEqual({ vendor: "sim", model: "big", cleared: true });
    expect(cleared).toEqual([["sim", "big"]]);
  });
});
