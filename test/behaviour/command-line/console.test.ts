import type { ConnectRouter } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { accountId, createTime, keyId as userId, time } from "./sample.ts";
import { run, runJson } from "./support.ts";

describe("console link", () => {
  const asked: unknown[] = [];
  const token = "t".repeat(43);
  const routes = (router: ConnectRouter) => {
    router.service(UserService, {
      createSignInLink({ userId: user, accountId: account }) {
        asked.push([user, account]);
        return { token, expireTime: createTime, user: { userId, accountId } };
      },
    });
  };

  it("prints where the operator is let in, as browsers reach it", async () => {
    const env = { UAS_PUBLIC_URL: "https://ai.example" };
    const { json, code } = await runJson(["console", "link"], { routes, env });
    const url = `https://ai.example/console/welcome#${token}`;
    expect({ json, code }).toEqual({ json: { url, userId, accountId, expiresAt: time }, code: 0 });
    expect(asked.splice(0)).toEqual([["", ""]]);
  });

  it("prints the console's own host, if it has one", async () => {
    const env = {
      UAS_PUBLIC_URL: "https://ai.example",
      UAS_CONSOLE_URL: "https://console.example",
    };
    const { out } = await run(["console", "link"], { routes, env });
    expect(out).toBe(`https://console.example/console/welcome#${token}\n`);
    expect(asked.splice(0)).toEqual([["", ""]]);
  });

  it.each([
    ["127.0.0.1:9090", "http://127.0.0.1:9090"],
    ["0.0.0.0:8080", "http://127.0.0.1:8080"],
    ["[::1]:8080", "http://[::1]:8080"],
  ])("a gateway that listens on %s gets console links at %s", async (listen, address) => {
    const env = { UAS_LISTEN: listen };
    const ran = await run(["console", "link", "--user", userId], { routes, env });
    expect(ran.out).toBe(`${address}/console/welcome#${token}\n`);
    expect(asked.splice(0)).toEqual([[userId, ""]]);
  });
});
