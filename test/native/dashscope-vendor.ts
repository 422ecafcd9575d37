/** DashScope, simulated: strict about what it is asked, and with Alibaba's own spelling of what it answers. */
import { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import { type Gateway, startGateway, type TestModel } from "../support/gateway.ts";
import {
  type AskedVendor,
  type NativeVendorServer,
  startNativeVendor,
  type VendorAnswer,
} from "./native-vendor.ts";
import { unitModel } from "./unit-model.ts";

/** A gateway, and DashScope behind it. */
export interface DashscopeGateway extends Gateway {
  readonly vendor: NativeVendorServer;
  readonly dashscope: Dashscope;
}

const route = (model: string) => [{ vendor: "dashscope", model }];

const models: Readonly<Record<string, TestModel>> = {
  "qwen-plus": { routes: route("qwen-plus") },
  "our/qwen": { routes: route("qwen-turbo") },
  "text-embedding-v4": { routes: route("text-embedding-v4"), maxOutputTokens: 1 },
  "qwen-image": unitModel(ModelType.IMAGE, ["dashscope", "qwen-image"], { image: 20_000_000n }),
  "wan2.6-t2i": unitModel(ModelType.IMAGE, ["dashscope", "wan2.6-t2i"], { image: 20_000_000n }),
  "wan2.6-t2v": unitModel(ModelType.VIDEO, ["dashscope", "wan2.6-t2v"], { second: 100_000_000n }),
};

/** Starts both. */
export async function startDashscopeGateway(): Promise<DashscopeGateway> {
  const vendor = await startNativeVendor({ header: "authorization", scheme: "Bearer " });
  const dashscope = new Dashscope();
  vendor.answer((asked) => dashscope.answer(asked));
  const gateway = await startGateway({
    vendors: {
      dashscope: {
        kind: "dashscope",
        baseUrl: vendor.origin,
        apiKey: vendor.secret,
        nativePrefix: "/dashscope",
      },
    },
    models,
  });
  return {
    ...gateway,
    vendor,
    dashscope,
    async close() {
      await gateway.close();
      await vendor.close();
    },
  };
}

/** Of the reply below: what is charged. */
export const dashscopeUsage = { input: 22, output: 17 };

const usage =
  '{"total_tokens":39,"output_tokens":17,"input_tokens":22,"prompt_tokens_details":{"cached_tokens":0}}';

/** A whole reply, with white space and numbers that a rewrite would change. */
export const dashscopeReply = `{"output":{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"Hall\\u00f6 "}}]},  "usage":${usage},
 "logprob": -0.10, "seed": 9007199254740993, "request_id":"vendor-body-id"}\r\n`;

/** Frames of a stream, as Alibaba has them. Text and usage are cumulative where `incremental_output` is not set. */
export function dashscopeEvents(isIncremental: boolean): readonly string[] {
  const texts = isIncremental ? ["Hal", "lö", ""] : ["Hal", "Hallö", "Hallö"];
  return texts.map((text, at) => {
    const isLast = at === texts.length - 1;
    const counts = isLast
      ? usage
      : `{"total_tokens":${23 + at},"output_tokens":${1 + at},"input_tokens":22}`;
    const reason = isLast ? "stop" : "null";
    return `id:${at + 1}\nevent:result\n:HTTP_STATUS/200\ndata:{"output":{"choices":[{"message":{"content":"${text}","role":"assistant"},"finish_reason":"${reason}"}]},"usage":${counts},"request_id":"vendor-body-id", "seed":9007199254740993}\n\n`;
  });
}

/** A refusal in its form. */
export function dashscopeError(status: number, code: string, message = "No."): VendorAnswer {
  return { status, body: JSON.stringify({ code, message, request_id: "vendor-body-id" }) };
}

/** Its answers. */
export class Dashscope {
  /** What it answers instead, once. */
  next: VendorAnswer | undefined;

  answer(asked: AskedVendor): VendorAnswer | undefined {
    const { next } = this;
    this.next = undefined;
    if (next !== undefined) return next;
    const path = asked.url.replace(/\?.*/, "");
    if (asked.method === "POST" && path === `${services}/aigc/text-generation/generation`) {
      return generate(asked);
    }
    if (asked.method === "POST" && path === `${services}/aigc/multimodal-generation/generation`) {
      return draw(asked);
    }
    if (
      asked.method === "POST" &&
      path === `${services}/embeddings/text-embedding/text-embedding`
    ) {
      return embed(asked);
    }
    return dashscopeError(404, "InvalidURL", "url error, please check url！");
  }
}

const services = "/api/v1/services";

/** What it says of a body that is not as its documentation has it; `undefined`: nothing. */
function invalid({ json, headers }: AskedVendor, model: RegExp): VendorAnswer | undefined {
  const refuse = (message: string) => dashscopeError(400, "InvalidParameter", message);
  if (headers["content-type"] !== "application/json") return refuse("content-type");
  if (json === undefined)
    return refuse("Required body invalid, please check the request body format.");
  const { model: name, input, parameters } = json;
  if (typeof name !== "string" || !model.test(name)) return refuse("Model not exist.");
  if (typeof input !== "object" || input === null)
    return refuse("Required input missing or invalid");
  const known = new Set(["model", "input", "parameters", "seed"]);
  const foreign = Object.keys(json).find((each) => !known.has(each));
  if (foreign !== undefined) return refuse(`unknown member ${foreign}`);
  return parameters === undefined || typeof parameters === "object"
    ? undefined
    : refuse("parameters");
}

function generate(asked: AskedVendor): VendorAnswer {
  const refused = invalid(asked, /^qwen-(plus|turbo)$/);
  if (refused !== undefined) return refused;
  if (asked.headers["x-dashscope-async"] !== undefined) {
    return dashscopeError(
      403,
      "AccessDenied",
      "current user api does not support asynchronous calls",
    );
  }
  if (asked.headers["x-dashscope-sse"] !== "enable") return { body: dashscopeReply };
  const parameters = (asked.json?.["parameters"] ?? {}) as Record<string, unknown>;
  const headers = { "content-type": "text/event-stream;charset=UTF-8" };
  return { headers, body: dashscopeEvents(parameters["incremental_output"] === true) };
}

function draw(asked: AskedVendor): VendorAnswer {
  const refused = invalid(asked, /^qwen-image$/);
  if (refused !== undefined) return refused;
  const image = "https://dashscope-result.oss.test/1.png?Expires=1&Signature=a%2Fb";
  const content = [{ image }, { image }];
  const output = { choices: [{ finish_reason: "stop", message: { role: "assistant", content } }] };
  return { body: JSON.stringify({ output, usage: { image_count: 2, width: 1328, height: 1328 } }) };
}

function embed(asked: AskedVendor): VendorAnswer {
  const refused = invalid(asked, /^text-embedding-v4$/);
  if (refused !== undefined) return refused;
  const output = { embeddings: [{ embedding: [0.5, -0.25], text_index: 0 }] };
  return { body: JSON.stringify({ output, usage: { total_tokens: 9 }, request_id: "r" }) };
}
