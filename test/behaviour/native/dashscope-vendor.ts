/** DashScope, simulated: strict about requests, and with Alibaba's spelling in replies. */
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { caFile, type Receiver, startReceiver } from "../../support/receiver.ts";
import { type Gateway, startGateway, type TestModel } from "../../support/gateway.ts";
import {
  type AskedVendor,
  type NativeVendorServer,
  often,
  startNativeVendor,
  type VendorAnswer,
} from "./native-vendor.ts";
import { unitModel } from "./unit-model.ts";

/** A gateway, and DashScope behind it. */
export interface DashscopeGateway extends Gateway {
  readonly vendor: NativeVendorServer;
  readonly dashscope: Dashscope;
  readonly receiver: Receiver;
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
  const receiver = await startReceiver();
  const dashscope = new Dashscope(vendor.origin);
  vendor.answer((asked) => dashscope.answer(asked));
  const gateway = await startGateway({
    taskTimings: often,
    vendors: {
      dashscope: {
        kind: "dashscope",
        baseUrl: vendor.origin,
        apiKey: vendor.secret,
        nativePrefix: "/dashscope",
      },
    },
    models,
    webhooks: { allowHosts: ["localhost"], caFile },
  });
  return {
    ...gateway,
    vendor,
    dashscope,
    receiver,
    async close() {
      await gateway.close();
      await receiver.close();
      await vendor.close();
    },
  };
}

/** Of the reply below: what is charged. */
export const dashscopeUsage = { input: 22, output: 17 };

const counts =
  '{"total_tokens":39,"output_tokens":17,"input_tokens":22,"prompt_tokens_details":{"cached_tokens":0}}';

/** A whole reply, with white space and numbers that a rewrite would change. */
export const dashscopeReply = `{"output":{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"Hall\\u00f6 "}}]},  "usage":${counts},
 "logprob": -0.10, "seed": 9007199254740993, "request_id":"vendor-body-id"}\r\n`;

/**
 * Frames of a stream, as Alibaba has them. Text and usage are cumulative if `incremental_output` is
 * not set.
 */
export function dashscopeEvents(isIncremental: boolean): readonly string[] {
  const texts = isIncremental ? ["Hal", "lö", ""] : ["Hal", "Hallö", "Hallö"];
  return texts.map((text, at) => {
    const isLast = at === texts.length - 1;
    const told = isLast
      ? counts
      : `{"total_tokens":${23 + at},"output_tokens":${1 + at},"input_tokens":22}`;
    const reason = isLast ? "stop" : "null";
    return `id:${at + 1}\nevent:result\n:HTTP_STATUS/200\ndata:{"output":{"choices":[{"message":{"content":"${text}","role":"assistant"},"finish_reason":"${reason}"}]},"usage":${told},"request_id":"vendor-body-id", "seed":9007199254740993}\n\n`;
  });
}

/** A refusal in its form. */
export function dashscopeError(status: number, code: string, message = "No."): VendorAnswer {
  return { status, body: JSON.stringify({ code, message, request_id: "vendor-body-id" }) };
}

/** A task as it has it. */
export interface DashscopeTask {
  readonly id: string;
  readonly model: string;
  status: string;
  /** Other members of its output. */
  output: Readonly<Record<string, unknown>>;
  usage: Readonly<Record<string, unknown>> | undefined;
}

/** Its answers. */
export class Dashscope {
  readonly tasks = new Map<string, DashscopeTask>();
  readonly #origin: string;
  #made = 0;

  constructor(origin: string) {
    this.#origin = origin;
  }

  /** The newest task. */
  last(): DashscopeTask {
    return [...this.tasks.values()].at(-1) as DashscopeTask;
  }

  /** Ends the newest task well. */
  succeed(usage: DashscopeTask["usage"], count = 1): void {
    const task = this.last();
    const url = `${this.#origin}/files/1`;
    task.output = task.model.includes("t2v")
      ? { video_url: `${url}.mp4` }
      : {
          results: Array.from({ length: count }, () => ({ url: `${url}.png` })),
          task_metrics: { TOTAL: count, SUCCEEDED: count, FAILED: 0 },
        };
    task.usage = usage;
    task.status = "SUCCEEDED";
  }

  /** Replaces its answer to the next submission; polls of workers are answered as usual. */
  next: VendorAnswer | undefined;

  answer(asked: AskedVendor): VendorAnswer | undefined {
    if (asked.method === "POST" && this.next !== undefined) {
      const { next } = this;
      this.next = undefined;
      return next;
    }
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
    if (asked.method === "POST" && submits.test(path)) return this.#submit(asked);
    const [, id = "", cancel] = /^\/api\/v1\/tasks\/([\w-]+)(\/cancel)?$/.exec(path) ?? [];
    if (id !== "" && asked.method === (cancel === undefined ? "GET" : "POST")) {
      return cancel === undefined ? this.#poll(id) : this.#cancel(id, asked);
    }
    if (path.startsWith("/files/")) return { headers: { "content-type": "image/png" }, body: png };
    return dashscopeError(404, "InvalidURL", "url error, please check url！");
  }

  #submit(asked: AskedVendor): VendorAnswer {
    const refused = invalid(asked, /^wan2\.6-t2[iv]$/);
    if (refused !== undefined) return refused;
    if (asked.headers["x-dashscope-async"] !== "enable") {
      return dashscopeError(
        403,
        "AccessDenied",
        "current user api does not support synchronous calls.",
      );
    }
    const id = `t${++this.#made}-${"x".repeat(120)}`;
    const model = String(asked.json?.["model"]);
    this.tasks.set(id, { id, model, status: "PENDING", output: {}, usage: undefined });
    return {
      body: `{"output":{"task_status":"PENDING","task_id":"${id}"},  "request_id":"vendor-body-id"}\n`,
    };
  }

  /** It also answers about unknown tasks. */
  #poll(id: string): VendorAnswer {
    const { status, output, usage } =
      this.tasks.get(id) ?? ({ status: "UNKNOWN", output: {} } as const);
    const told = JSON.stringify({ task_id: id, task_status: status, ...output });
    const counted = usage === undefined ? "" : `, "usage": ${JSON.stringify(usage)}`;
    return {
      body: `{"request_id":"vendor-body-id", "output": ${told}${counted}, "seed": 9007199254740993, "x": -0.10}\r\n`,
    };
  }

  #cancel(id: string, { body }: AskedVendor): VendorAnswer {
    const task = this.tasks.get(id);
    if (body.length > 0) return dashscopeError(400, "InvalidParameter", "no body is wanted");
    if (task?.status !== "PENDING") {
      return dashscopeError(
        400,
        "UnsupportedOperation",
        "Failed to cancel the task, please confirm if the task is in PENDING status.",
      );
    }
    task.status = "CANCELED";
    return { body: '{"request_id":"vendor-body-id"}' };
  }
}

const services = "/api/v1/services";
const submits =
  /^\/api\/v1\/services\/aigc\/(text2image\/image|video-generation\/video)-synthesis$/;
const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

/** Returns its error for a body that violates its documentation; undefined for a valid body. */
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
