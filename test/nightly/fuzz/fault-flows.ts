/**
 * The ways to call vendors of every kind while their replies are hurt: calls, streams, tasks and
 * native jobs.
 */
import { type Caller, callerPaths, callerRequest } from "../../behaviour/disconnect/vanishing.ts";
import { type RawReply, type RawRequest, send } from "../../support/raw-http.ts";
import { writeForm } from "./bodies.ts";
import type { Step } from "./vendor-proxy.ts";
import { heldText, textVendors } from "./vendors.ts";
import type { World } from "./world.ts";

/**
 * The vendors behind a proxy. The kind `demo` answers within the gateway: there is nothing to hurt.
 */
export const proxiedVendors: readonly string[] = [
  ...textVendors.map((name) => `text-${name}`),
  ...["text-chat-b", "media", "openai", "cohere", "jina"],
  ...["gemini", "replicate", "dashscope", "fal"].map((name) => `native-${name}`),
];

/** A way to call a vendor. */
export interface Flow {
  readonly name: string;
  readonly path: string;
  /** The request, whose text has the mark. */
  readonly body: (mark: string) => object | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  readonly isStream: boolean;
  /** End of a whole stream. */
  readonly terminal?: string;
  /**
   * Whether a job may be running at the vendor after a failure: then it is never sent again
   * (R-ERR-5).
   */
  readonly isJob?: boolean;
  /** Whether another route of the model answers if the first one fails. */
  readonly hasOtherRoute?: boolean;
  /** Whether the reply's bytes are no text that is read: changed ones pass. */
  readonly isBinary?: boolean;
  /** Whether a long text passes, so that faults can come while it is sent. */
  readonly isLong?: boolean;
  /** Requests about its job until it has ended. Absent without a job. */
  readonly job?: JobFlow;
}

/** A job that continues after the answer to its submit. */
export interface JobFlow {
  /** Requests of it that can be hit. */
  readonly steps: readonly Step[];
  /** Whether the vendor makes all of it while its submit is open. */
  readonly isSynchronous?: boolean;
  /** Follows it from the answer to its submit to its end. */
  follow(ask: AskGateway, submitted: RawReply): Promise<RawReply>;
}

/** Asks the gateway for the account of the run. */
export type AskGateway = (path: string, request: RawRequest) => Promise<RawReply>;

/** Sends a request of a flow, and follows its job. @param id the request id */
export async function sendFlow(
  { gateway, rich }: World,
  flow: Flow,
  { id, mark }: { readonly id: string; readonly mark: string },
): Promise<RawReply> {
  const authorization = `Bearer ${rich.key}`;
  const ask: AskGateway = (path, request) =>
    send(`${gateway.url}${path}`, { ...request, headers: { authorization, ...request.headers } });
  const body = flow.body(mark);
  const submitted = await ask(flow.path, {
    headers: { "content-type": "application/json", "x-request-id": id, ...flow.headers },
    body: Buffer.isBuffer(body) ? body : JSON.stringify(body),
  });
  return submitted.status >= 300 ? submitted : (flow.job?.follow(ask, submitted) ?? submitted);
}

/** All of them. */
export function flows(): Flow[] {
  return [...textFlows(), ...callFlows(), ...nativeFlows(), ...taskFlows(), ...nativeJobFlows()];
}

function textFlows(): Flow[] {
  const callers: readonly Caller[] = ["chat", "responses", "messages"];
  const terminals = { chat: "[DONE]", responses: "response.completed", messages: "message_stop" };
  const flow = (caller: Caller, model: string, isStream: boolean): Flow => ({
    name: `${caller} to ${model}${isStream ? ", streamed" : ""}`,
    path: callerPaths[caller],
    body: (mark) => callerRequest(caller, { model, stream: isStream, text: `greet ${mark}` }),
    ...{ isStream, isLong: true, hasOtherRoute: model === "m-again" },
    ...(isStream && { terminal: terminals[caller] }),
  });
  const models = [...textVendors.map((vendor) => `m-${vendor}`), "m-again"];
  return callers.flatMap((caller) =>
    models.flatMap((model) => [false, true].map((isStream) => flow(caller, model, isStream))),
  );
}

function whole(name: string, path: string, body: Flow["body"], more: Partial<Flow> = {}): Flow {
  return { name, path, body, isStream: false, ...more };
}

function callFlows(): Flow[] {
  const form = (mark: string) =>
    writeForm(
      [
        ["model", "ears"],
        ["prompt", mark],
        ["file", Buffer.alloc(2_000, 1)],
      ],
      "b",
    );
  const rerank = (name: string, model: string, path: string) =>
    whole(name, path, (mark) => ({ model, query: mark, documents: ["a", "b"] }), { isLong: true });
  const isJob = true;
  return [
    whole("embeddings", "/v1/embeddings", (mark) => ({ model: "embed", input: mark })),
    whole("moderations", "/v1/moderations", (mark) => ({ model: "moderator", input: mark })),
    whole("completions", "/v1/completions", (mark) => ({
      ...{ model: "instruct", prompt: mark, max_tokens: 9 },
    })),
    rerank("cohere", "ranker", "/v2/rerank"),
    rerank("jina", "ranker-jina", "/v1/rerank"),
    whole("images", "/v1/images/generations", (mark) => ({ model: "pictures", prompt: mark }), {
      isJob,
    }),
    whole("speech", "/v1/audio/speech", (mark) => ({ model: "voice", input: mark, voice: "a" }), {
      // It is passed on while it arrives.
      ...{ isStream: true, isBinary: true },
    }),
    whole("transcription", "/v1/audio/transcriptions", form, {
      headers: { "content-type": "multipart/form-data; boundary=b" },
    }),
  ];
}

const services = "/dashscope/api/v1/services/aigc";

function nativeFlows(): Flow[] {
  const contents = (mark: string) => ({ contents: [{ parts: [{ text: mark }] }] });
  const talk = (mark: string) => ({
    model: "qwen-plus",
    input: { messages: [{ role: "user", content: mark }] },
    parameters: { result_format: "message", incremental_output: true },
  });
  const model = "/gemini/v1beta/models/gemini-x";
  const generation = `${services}/text-generation/generation`;
  return [
    whole("gemini native", `${model}:generateContent`, contents),
    whole("gemini native, streamed", `${model}:streamGenerateContent?alt=sse`, contents, {
      isStream: true,
    }),
    whole("dashscope native", generation, talk),
    whole("dashscope native, streamed", generation, talk, {
      ...{ isStream: true, headers: { "x-dashscope-sse": "enable" } },
    }),
    whole("fal native", "/fal/run/fal-ai/flux/schnell", (prompt) => ({ prompt }), { isJob: true }),
    whole(
      "replicate native",
      "/replicate/v1/models/labs/flux/predictions",
      (prompt) => ({ input: { prompt } }),
      { isJob: true, headers: { prefer: "wait" } },
    ),
  ];
}

/** Tasks of the gateway, as long as vendors poll them. */
function taskFlows(): Flow[] {
  const polled: readonly Step[] = ["submit", "poll", "file"];
  const task = (modelKey: string, params: string, job: Partial<JobFlow> = {}): Flow =>
    whole(
      `task of ${modelKey}`,
      "/api/ai/tasks",
      (mark) => ({ modelKey, [params]: { prompt: mark } }),
      { job: { steps: polled, follow: followTask, ...job } },
    );
  const cancelled = (modelKey: string): Flow => ({
    ...task(modelKey, "imageParams"),
    name: `cancelled task of ${modelKey}`,
    body: (mark) => ({ modelKey, imageParams: { prompt: `${heldText} ${mark}` } }),
    job: { steps: ["cancel"], follow: cancelTask },
  });
  return [
    task("labs/flux", "imageParams"),
    task("fal-ai/flux/schnell", "imageParams"),
    task("wan2.6-t2i", "imageParams"),
    task("veo", "videoParams"),
    task("pictures", "imageParams", { steps: ["submit"], isSynchronous: true }),
    ...["labs/flux", "fal-ai/flux/schnell", "wan2.6-t2i"].map(cancelled),
  ];
}

function nativeJobFlows(): Flow[] {
  const steps: readonly Step[] = ["submit", "poll"];
  const job = (name: string, path: string, body: Flow["body"], poll: PollNative): Flow =>
    whole(name, path, body, {
      isJob: true,
      job: { steps, follow: (ask, submitted) => followNative(ask, submitted, poll) },
    });
  return [
    job("fal queue", "/fal/queue/fal-ai/flux/schnell", (prompt) => ({ prompt }), {
      pathOf: ({ request_id: id }) => `/fal/queue/fal-ai/flux/requests/${String(id)}/status`,
      isOver: /"status":"COMPLETED"/,
    }),
    {
      ...job(
        "dashscope async",
        `${services}/text2image/image-synthesis`,
        (prompt) => ({ model: "wan2.6-t2i", input: { prompt }, parameters: {} }),
        {
          pathOf: ({ output }) =>
            `/dashscope/api/v1/tasks/${String((output as { task_id: unknown }).task_id)}`,
          isOver: /"task_status":"SUCCEEDED"/,
        },
      ),
      headers: { "x-dashscope-async": "enable" },
    },
    job(
      "replicate predictions",
      "/replicate/v1/models/labs/flux/predictions",
      (prompt) => ({ input: { prompt } }),
      {
        pathOf: ({ id }) => `/replicate/v1/predictions/${String(id)}`,
        isOver: /"status":"succeeded"/,
      },
    ),
    job(
      "gemini video",
      "/gemini/v1beta/models/veo:predictLongRunning",
      (prompt) => ({ instances: [{ prompt }] }),
      { pathOf: ({ name }) => `/gemini/v1beta/${String(name)}`, isOver: /"done": *true/ },
    ),
  ];
}

interface PollNative {
  readonly pathOf: (submitted: Readonly<Record<string, unknown>>) => string;
  readonly isOver: RegExp;
}

function parse({ body }: RawReply): Readonly<Record<string, unknown>> {
  return JSON.parse(body.toString()) as Record<string, unknown>;
}

/** Polls the gateway; each poll waits for a change. */
async function followTask(ask: AskGateway, submitted: RawReply): Promise<RawReply> {
  const path = `/api/ai/tasks/${String(parse(submitted)["taskId"])}?wait=20`;
  for (;;) {
    const reply = await ask(path, { method: "GET" });
    if (reply.status < 300 && parse(reply)["status"] !== "progress") return reply;
  }
}

/** Cancels it once its vendor has it. */
async function cancelTask(ask: AskGateway, submitted: RawReply): Promise<RawReply> {
  const path = `/api/ai/tasks/${String(parse(submitted)["taskId"])}`;
  let reply = submitted;
  while (parse(reply)["startedAt"] === undefined && parse(reply)["status"] === "progress") {
    reply = await ask(`${path}?wait=5`, { method: "GET" });
  }
  await ask(`${path}/cancel`, {});
  return followTask(ask, submitted);
}

/** Polls the vendor through the gateway, which also polls the job itself. */
async function followNative(
  ask: AskGateway,
  submitted: RawReply,
  { pathOf, isOver }: PollNative,
): Promise<RawReply> {
  const path = pathOf(parse(submitted));
  for (;;) {
    const reply = await ask(path, { method: "GET" });
    if (reply.status < 300 && isOver.test(reply.body.toString())) return reply;
  }
}
