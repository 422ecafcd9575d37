/** fal, simulated: strict about what it is asked, with a queue and direct calls at addresses of their own. */
import { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import { type Gateway, startGateway, type TestModel } from "../support/gateway.ts";
import {
  type AskedVendor,
  type NativeVendorServer,
  startNativeVendor,
  type VendorAnswer,
} from "./native-vendor.ts";
import { unitModel } from "./unit-model.ts";

/** A gateway, and fal behind it. */
export interface FalGateway extends Gateway {
  /** Where the queue is. */
  readonly queue: NativeVendorServer;
  /** Where direct calls are. */
  readonly run: NativeVendorServer;
  readonly fal: Fal;
}

const models: Readonly<Record<string, TestModel>> = {
  "fal-ai/flux/schnell": unitModel(ModelType.IMAGE, ["fal", "fal-ai/flux/schnell"], {
    image: 3_000_000n,
  }),
  "our/flux": unitModel(ModelType.IMAGE, ["fal", "fal-ai/flux/dev"], { image: 25_000_000n }),
  "fal-ai/veo3": unitModel(ModelType.VIDEO, ["fal", "fal-ai/veo3"], { second: 400_000_000n }),
  "fal-ai/f5-tts": unitModel(ModelType.AUDIO, ["fal", "fal-ai/f5-tts"], { second: 1_000_000n }),
};

/** Starts all. */
export async function startFalGateway(): Promise<FalGateway> {
  const credential = { header: "authorization", scheme: "Key " };
  const queue = await startNativeVendor(credential);
  const run = await startNativeVendor(credential);
  const fal = new Fal();
  run.answer((asked) => fal.direct(asked));
  queue.answer((asked) => fal.queued(asked, queue.origin));
  const gateway = await startGateway({
    vendors: {
      fal: {
        kind: "fal",
        baseUrl: queue.origin,
        runBaseUrl: run.origin,
        apiKey: queue.secret,
        nativePrefix: "/fal",
        onDisconnect: "drain",
      },
    },
    models,
  });
  return {
    ...gateway,
    queue,
    run,
    fal,
    async close() {
      await gateway.close();
      await queue.close();
      await run.close();
    },
  };
}

/** A result, with white space and numbers that a rewrite would change. */
export const falResult = `{"images": [{"url":"https://v3.fal.media/files/a/1.png","width":1024,"height":768,"content_type":"image/png"}],
 "timings":{"inference": 0.10},"seed":9007199254740993,"has_nsfw_concepts":[false],"prompt":"see https://queue.fal.run/x"}\r\n`;

/** Events of a stream: each shows the picture anew. */
export const falEvents: readonly string[] = [1, 2, 3].map(
  (step) =>
    `data: {"images": [{"url":"data:image/jpeg;base64,/9j/${step}","content_type":"image/jpeg"}],"seed":9007199254740993, "progress": 0.${step}0}\r\n\r\n`,
);

/** A refusal in its form. */
export function falError(status: number, detail: unknown): VendorAnswer {
  return {
    status,
    headers: { "x-fal-request-id": "fal-refused" },
    body: JSON.stringify({ detail }),
  };
}

/** Its answers. */
export class Fal {
  /** What it answers instead, once. */
  next: VendorAnswer | undefined;
  /** What it says that a direct call is billed by. `undefined`: nothing. */
  billed: string | undefined;

  direct(asked: AskedVendor): VendorAnswer | undefined {
    const { next } = this;
    this.next = undefined;
    if (next !== undefined) return next;
    const refused = invalid(asked);
    if (refused !== undefined) return refused;
    const headers: Record<string, string> = {
      "x-fal-request-id": "fal-request-1",
      ...(this.billed !== undefined && { "x-fal-billable-units": this.billed }),
    };
    const [, model, stream] =
      /^\/(fal-ai\/[\w-]+(?:\/(?!stream)[\w-]+)?)(\/stream)?$/.exec(asked.url) ?? [];
    if (model === undefined) return falError(404, `Application "${asked.url}" not found`);
    if (stream !== undefined) {
      return { headers: { ...headers, "content-type": "text/event-stream" }, body: falEvents };
    }
    if (model === "fal-ai/veo3") {
      return { headers, body: '{"video":{"url":"https://v3.fal.media/1.mp4","duration":4.5}}' };
    }
    if (model === "fal-ai/f5-tts") {
      return { headers, body: '{"audio_url":{"url":"https://v3.fal.media/1.wav"}}' };
    }
    return { headers, body: falResult };
  }

  queued(_asked: AskedVendor, _origin: string): VendorAnswer | undefined {
    return undefined;
  }
}

/** What it says of a request that is not as its documentation has it; `undefined`: nothing. */
function invalid({ method, json, headers }: AskedVendor): VendorAnswer | undefined {
  if (method !== "POST") return falError(405, "Method Not Allowed");
  if (headers["content-type"] !== "application/json")
    return falError(415, "Unsupported media type");
  if (typeof json?.["prompt"] === "string") return undefined;
  return falError(422, [
    { loc: ["body", "prompt"], msg: "field required", type: "value_error.missing" },
  ]);
}
