/** The providers of SMS, against strict fakes of their servers. */
import { createHash, createHmac } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { type Sms, SmsFailure } from "../../../src/account/sms/provider.ts";
import { createSms } from "../../../src/account/sms/sms.ts";
import { signAliyun } from "../../../src/account/sms/alibaba.ts";
import type { SmsConfig } from "../../../src/config/config.ts";

/** A request that a provider got. */
interface Got {
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

const opened: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of opened.splice(0).toReversed()) await close();
});

/** A provider's server; `got` resolves with the n-th request. */
async function startProvider(answer: (got: Got) => Answer) {
  const all: Got[] = [];
  let wake = (): void => {};
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      const { method = "", headers } = request;
      const url = new URL(request.url ?? "", "http://provider");
      const got = { method, url, headers, body: Buffer.concat(pieces).toString() };
      all.push(got);
      const { status, body } = answer(got);
      response.writeHead(status, { "content-type": "application/json" });
      response.end(typeof body === "string" ? body : JSON.stringify(body));
      wake();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  opened.push(
    () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  );
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    all,
    async got(count: number): Promise<Got> {
      while (all.length < count) await new Promise<void>((resolve) => (wake = resolve));
      return all[count - 1] as Got;
    },
  };
}

const rules = { countries: [], dailyMax: 10 };
const message = {
  to: "+8613800138000",
  code: "0123456",
  language: "zh",
  text: "0123456 …",
} as const;

function open(config: SmsConfig): Sms {
  const sms = createSms(config, () => {});
  opened.push(() => sms.close());
  return sms;
}

describe("http", () => {
  it("posts each message as JSON, with the token", async () => {
    const provider = await startProvider(() => ({ status: 202, body: "" }));
    const url = `${provider.url}/sms/send`;
    await open({ ...rules, provider: "http", url, token: "t0ken" }).send(message);
    const { method, url: asked, headers, body } = await provider.got(1);
    expect([method, asked.pathname]).toEqual(["POST", "/sms/send"]);
    expect(headers).toMatchObject({
      authorization: "Bearer t0ken",
      "content-type": "application/json",
    });
    expect(JSON.parse(body)).toEqual(message);
  });

  it.each([300, 400, 401, 500])("takes %s for a refusal", async (status) => {
    const body = { message: "no credit for +8613800138000" };
    const provider = await startProvider(() => ({ status, body }));
    const sms = open({ ...rules, provider: "http", url: provider.url, token: undefined });
    const failure = await sms.send(message).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(SmsFailure);
    expect(String(failure)).toContain(String(status));
    // Failures are for the log, which has no numbers.
    expect(String(failure)).not.toContain("13800138000");
  });

  it("fails without a listener, without the message in its words", async () => {
    const sms = open({ ...rules, provider: "http", url: "http://127.0.0.1:1", token: "t0ken" });
    const failure = await sms.send(message).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(SmsFailure);
    for (const hidden of [message.code, message.to, "t0ken"])
      expect(String(failure)).not.toContain(hidden);
  });
});

describe("twilio", () => {
  const config = (baseUrl: string): SmsConfig => {
    const sids = { accountSid: "AC1", serviceSid: "VA1" };
    return { ...rules, provider: "twilio", baseUrl, authToken: "secret", ...sids };
  };

  /** As Twilio Verify answers, and refuses what it would. */
  function verify({ method, url, headers, body }: Got): Answer {
    const basic = `Basic ${Buffer.from("AC1:secret").toString("base64")}`;
    if (headers.authorization !== basic) return { status: 401, body: { code: 20003 } };
    const form = Object.fromEntries(new URLSearchParams(body));
    const isForm = headers["content-type"] === "application/x-www-form-urlencoded";
    if (method !== "POST" || !isForm) return { status: 400, body: { code: 20001 } };
    if (url.pathname === "/v2/Services/VA1/Verifications") {
      const { To = "", Channel, CustomCode = "", ...rest } = form;
      const isRight = /^\+\d{8,15}$/.test(To) && Channel === "sms" && /^\d{4,10}$/.test(CustomCode);
      if (!isRight || Object.keys(rest).join() !== "Locale")
        return { status: 400, body: { code: 60200 } };
      return { status: 201, body: { sid: "VE1", status: "pending" } };
    }
    const isUpdate = url.pathname === "/v2/Services/VA1/Verifications/VE1";
    if (isUpdate && body === "Status=approved") return { status: 200, body: { sid: "VE1" } };
    return { status: 404, body: { code: 20404 } };
  }

  it("starts a verification with our code, and says that it was right", async () => {
    const answers: number[] = [];
    const provider = await startProvider((got) => {
      const answer = verify(got);
      answers.push(answer.status);
      return answer;
    });
    const sms = open(config(provider.url));
    await sms.send(message);
    sms.confirmed(message.to);
    expect((await provider.got(2)).url.pathname).toMatch(/VE1$/);
    // A notification is sent once.
    sms.confirmed(message.to);
    await sms.send({ ...message, to: "+14155550100" });
    expect(provider.all).toHaveLength(3);
    expect(answers).toEqual([201, 200, 201]);
  });

  it("shows the operator its reason for a refusal", async () => {
    const body = { code: 60203, message: "Max send attempts reached" };
    const provider = await startProvider(() => ({ status: 429, body }));
    await expect(open(config(provider.url)).send(message)).rejects.toThrow(
      "429 60203: Max send attempts",
    );
  });
});

describe("aliyun", () => {
  const keys = { accessKeyId: "LTAI1", accessKeySecret: "s3cret" };
  const config = (baseUrl: string): SmsConfig => {
    const template = { signName: "极客", templateCode: "SMS_1" };
    return { ...rules, provider: "aliyun", baseUrl, ...keys, ...template };
  };
  const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

  /** The check that the vendor's documentation describes, written from it. */
  function isSigned({ method, url, headers, body }: Got): boolean {
    const [, credential, names = "", signature] =
      /^ACS3-HMAC-SHA256 Credential=(\w+),SignedHeaders=([\w;-]+),Signature=(\w{64})$/.exec(
        headers.authorization ?? "",
      ) ?? [];
    const lines = names.split(";").map((name) => `${name}:${String(headers[name]).trim()}\n`);
    const canonical = [
      method,
      url.pathname,
      url.search.slice(1),
      lines.join(""),
      names,
      sha256(body),
    ];
    const text = `ACS3-HMAC-SHA256\n${sha256(canonical.join("\n"))}`;
    const expected = createHmac("sha256", keys.accessKeySecret).update(text).digest("hex");
    const sorted = names === names.split(";").toSorted().join(";");
    const all = [
      "host",
      "x-acs-action",
      "x-acs-content-sha256",
      "x-acs-date",
      "x-acs-signature-nonce",
      "x-acs-version",
    ];
    const hasAll = all.every((name) => names.split(";").includes(name));
    return credential === keys.accessKeyId && sorted && hasAll && signature === expected;
  }

  it("signs as the vendor's example does", () => {
    const { headers } = signAliyun(
      { accessKeyId: "YourAccessKeyId", accessKeySecret: "YourAccessKeySecret" },
      {
        host: "ecs.cn-shanghai.aliyuncs.com",
        path: "/",
        action: "RunInstances",
        version: "2014-05-26",
        query: {
          ImageId: "win2019_1809_x64_dtc_zh-cn_40G_alibase_20230811.vhd",
          RegionId: "cn-shanghai",
        },
        date: "2023-10-26T10:22:32Z",
        nonce: "3156853299f313e23d1673dc12e1703d",
      },
    );
    expect(headers["authorization"]).toContain(
      "Signature=06563a9e1b43f5dfe96b81484da74bceab24a1d853912eee15083a6f0f3283c0",
    );
  });

  it("sends the code by the template, to numbers as the vendor writes them", async () => {
    const provider = await startProvider((got) =>
      isSigned(got)
        ? { status: 200, body: { Code: "OK" } }
        : { status: 403, body: { Code: "SignatureDoesNotMatch" } },
    );
    const sms = open(config(provider.url));
    await sms.send(message);
    await sms.send({ ...message, to: "+6581234567" });
    const [home, abroad] = provider.all.map(({ url }) => Object.fromEntries(url.searchParams));
    expect(home).toEqual({
      PhoneNumbers: "13800138000",
      SignName: "极客",
      TemplateCode: "SMS_1",
      TemplateParam: '{"code":"0123456"}',
    });
    expect(abroad?.["PhoneNumbers"]).toBe("6581234567");
    expect(provider.all[0]?.headers).toMatchObject({
      "x-acs-action": "SendSms",
      "x-acs-version": "2017-05-25",
    });
  });

  it("shows the operator the reason of a refusal, which arrives with status 200 too", async () => {
    const body = { Code: "isv.BUSINESS_LIMIT_CONTROL", Message: "too many" };
    const provider = await startProvider(() => ({ status: 200, body }));
    await expect(open(config(provider.url)).send(message)).rejects.toThrow(
      "isv.BUSINESS_LIMIT_CONTROL: too many",
    );
  });
});

it("without a provider nothing is sent, and it is said what to do", async () => {
  const sms = createSms(undefined, () => {});
  await expect(sms.send(message)).rejects.toThrow("uas.yaml");
});
