import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { CallOutcome } from "../../../gen/uas/billing/v1/call_pb.ts";
import { CallService, type ListCallsRequest } from "../../../gen/uas/billing/v1/call_service_pb.ts";
import { ErrorCode } from "../../../gen/uas/error/v1/error_pb.ts";
import { accountId, keyId } from "./sample.ts";
import { runJson } from "./support.ts";

it("calls list shows the requested calls, over pages that have none", async () => {
  const asked: ListCallsRequest[] = [];
  const routes = (router: ConnectRouter): void => {
    router.service(AccountService, { getAccount: () => ({ account: { accountId } }) });
    router.service(CallService, {
      listCalls: (request) => {
        asked.push(request);
        const calls = [{ callId: "c", requestId: "r", model: "fast-1" }];
        return request.pageToken === "" ? { calls: [], nextPageToken: "next" } : { calls };
      },
    });
  };
  const which = ["--model", "fast-1", "--key", keyId, "--error", "upstream_error", "--failed"];
  const when = ["--since", "2026-11-01", "--until", "2026-11-02"];
  const line = ["calls", "list", "--account", accountId, ...which, ...when];
  const { json } = await runJson(line, { routes });
  expect(json).toMatchObject([{ callId: "c", requestId: "r" }]);
  expect(asked).toHaveLength(2);
  expect(asked[1]).toMatchObject({
    accountId,
    pageToken: "next",
    filter: {
      model: "fast-1",
      keyId,
      errorCode: ErrorCode.UPSTREAM_ERROR,
      outcome: CallOutcome.FAILED,
      fromTime: timestampFromDate(new Date("2026-11-01T00:00Z")),
      toTime: timestampFromDate(new Date("2026-11-02T00:00Z")),
    },
  });
});
