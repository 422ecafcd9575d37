import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import {
  AddressClass,
  AttemptOutcome,
  DeliveryState,
  EndpointState,
  WebhookStatus,
} from "../../../gen/uas/webhook/v1/webhook_pb.ts";
import { WebhookService } from "../../../gen/uas/webhook/v1/webhook_service_pb.ts";
import { run, runJson } from "./support.ts";

const accountId = "01890000-0000-7000-8000-000000000001";
const deliveryId = "01890000-0000-7000-8000-000000000003";
const time = "2026-11-21T09:30:00.000Z";
const at = timestampFromDate(new Date(time));

describe("webhook", () => {
  const asked: unknown[] = [];
  const delivery = {
    deliveryId,
    accountId,
    callbackId: "order-1",
    status: WebhookStatus.FAILED,
    state: DeliveryState.DELIVERED,
    sequence: 2,
    attemptCount: 1,
    createTime: at,
    endTime: at,
    url: "https://a.example/",
  };
  const attempt = {
    number: 1,
    startTime: at,
    outcome: AttemptOutcome.DELIVERED,
    status: 204,
    addressClass: AddressClass.PUBLIC_IPV4,
    totalDuration: { seconds: 0n, nanos: 12_000_000 },
    answer: "a\u001b[31mb",
  };
  const secret = { accountId, current: "whsec_a", other: "", isPromoted: true };
  const routes = (router: ConnectRouter) => {
    router.service(WebhookService, {
      getSecret: () => ({ secret }),
      rotateSecret: () => ({
        secret: { ...secret, other: "whsec_b", isPromoted: false, rotationEndTime: at },
      }),
      promoteSecret: ({ dropOld }) => ({
        secret: { ...secret, current: dropOld ? "whsec_b" : "whsec_c" },
      }),
      listDeliveries: (request) => {
        const { state, taskId, callbackId, origin, pageSize, pageToken } = request;
        const { accountId: of } = request;
        asked.push({ accountId: of, state, taskId, callbackId, origin, pageSize, pageToken });
        return { deliveries: [delivery] };
      },
      getDelivery: () => ({ delivery, body: '{"a":1}', attempts: [attempt] }),
      resendDelivery: (request) => {
        asked.push(request.deliveryId);
        return { delivery };
      },
      resendFailed: ({ since, origin }) => {
        asked.push([since?.seconds, origin]);
        return { deliveryCount: 3 };
      },
      sendTestEvent: ({ status, url }) => {
        asked.push([status, url]);
        return { delivery };
      },
      listEndpoints: () => ({
        endpoints: [
          {
            origin: "https://a.example",
            state: EndpointState.DEAD,
            failureCount: 9,
            waitingCount: 2,
            failingSince: at,
          },
        ],
      }),
      reenableEndpoint: ({ origin }) => ({ endpoint: { origin, state: EndpointState.HEALTHY } }),
    });
  };

  it("secret, rotate and promote print both secrets", async () => {
    const json = async (...args: string[]) =>
      (await runJson(["webhook", ...args, accountId], { routes })).json;
    const none = {
      accountId,
      secret: "whsec_a",
      otherSecret: null,
      promoted: true,
      rotationEndsAt: null,
    };
    expect(await json("secret")).toEqual(none);
    expect(await json("rotate")).toEqual({
      ...none,
      otherSecret: "whsec_b",
      promoted: false,
      rotationEndsAt: time,
    });
    expect(await json("promote")).toMatchObject({ secret: "whsec_c" });
    expect(await json("promote", "--drop-old")).toMatchObject({ secret: "whsec_b" });
  });

  it("deliveries passes every filter on", async () => {
    const line = [
      "webhook",
      "deliveries",
      "--account",
      accountId,
      "--state",
      "parked",
      "--task",
      "t",
    ];
    const more = ["--callback-id", "c", "--origin", "https://a.example", "--limit", "5"];
    const { json } = await runJson([...line, ...more], { routes });
    expect(asked.splice(0)).toEqual([
      {
        accountId,
        state: DeliveryState.PARKED,
        taskId: "t",
        callbackId: "c",
        origin: "https://a.example",
        pageSize: 5,
        pageToken: "",
      },
    ]);
    expect(json).toMatchObject([
      { deliveryId, status: "failed", state: "delivered", attempts: 1, endedAt: time },
    ]);
    expect((await run([...line.slice(0, 4), "--state", "lost"], { routes })).code).toBe(2);
  });

  it("show and resend print attempts and body, and let no answer steer the terminal", async () => {
    const { json } = await runJson(["webhook", "resend", deliveryId], { routes });
    expect(asked.splice(0)).toEqual([deliveryId]);
    expect(json).toMatchObject({
      body: '{"a":1}',
      attemptList: [
        { number: 1, outcome: "delivered", status: 204, addressClass: "public_ipv4", totalMs: 12 },
      ],
    });
    const { out } = await run(["webhook", "show", deliveryId], { routes });
    expect(out).toContain("a?[31mb");
    expect(out).not.toContain("\u001b");
  });

  it("resend-failed counts, and refuses what is no time", async () => {
    const line = ["webhook", "resend-failed", "--account", accountId, "--since"];
    const { json } = await runJson([...line, "2026-11-21T09:30:00Z"], { routes });
    expect(json).toEqual({ deliveries: 3 });
    expect(asked.splice(0)).toEqual([[BigInt(Date.parse(time) / 1_000), ""]]);
    expect((await run([...line, "yesterday"], { routes })).code).toBe(2);
  });

  it("test sends the requested payload and fails if it was not delivered", async () => {
    const line = ["webhook", "test", "--account", accountId, "--url", "https://a.example/"];
    expect((await run([...line, "--status", "cancelled"], { routes })).code).toBe(0);
    expect(asked.splice(0)).toEqual([[WebhookStatus.CANCELLED, "https://a.example/"]]);
    const refused = (router: ConnectRouter) => {
      router.service(WebhookService, {
        sendTestEvent: () => ({ delivery }),
        getDelivery: () => ({ delivery: { ...delivery, state: DeliveryState.FAILED } }),
      });
    };
    expect((await run(line, { routes: refused })).code).toBe(1);
  });

  it("endpoints and enable show the state", async () => {
    const { json } = await runJson(["webhook", "endpoints", "--account", accountId], { routes });
    expect(json).toMatchObject([
      { origin: "https://a.example", state: "dead", failures: 9, waiting: 2, failingSince: time },
    ]);
    const enabled = await runJson(
      ["webhook", "enable", "--account", accountId, "--origin", "https://b"],
      { routes },
    );
    expect(enabled.json).toMatchObject([{ origin: "https://b", state: "healthy" }]);
  });
});
