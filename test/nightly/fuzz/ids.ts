/** Things that exist before the fuzzer starts, so that its requests find some. */
import { send } from "../../support/raw-http.ts";
import { geminiCacheBody } from "./bodies.ts";
import type { World } from "./world.ts";

/** Their ids. */
export interface Ids {
  readonly response: string;
  readonly task: string;
  /** The name of a result file. */
  readonly file: string;
  readonly prediction: string;
  readonly dashscopeTask: string;
  readonly falJob: string;
  /** Names of Gemini's: `files/…`, `cachedContents/…`, an operation and an interaction. */
  readonly geminiFile: string;
  readonly geminiCache: string;
  readonly geminiOperation: string;
  readonly geminiInteraction: string;
  readonly replicateFile: string;
  /** By the names of fields and path parameters of the contract. */
  readonly known: Readonly<Record<string, string>>;
}

/** Maximum time for which the gateway may be too busy. */
const busyMs = 120_000;

/** Creates them. @throws if one is refused */
export async function createIds({ gateway, rich, victim }: World): Promise<Ids> {
  const endMs = performance.now() + busyMs;
  const ask = async (
    path: string,
    body: object | undefined,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Record<string, unknown>> => {
    const response = await send(`${gateway.url}${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: {
        authorization: `Bearer ${rich.key}`,
        "content-type": "application/json",
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = response.body.toString();
    // A busy machine is late with the first holds.
    if (response.status === 503 && performance.now() < endMs) return ask(path, body, headers);
    if (response.status >= 300) throw new Error(`${path}: ${response.status} ${text}`);
    return JSON.parse(text) as Record<string, unknown>;
  };
  const idOf = async (answer: Promise<Record<string, unknown>>, member = "id"): Promise<string> =>
    String((await answer)[member]);
  const store = (): Promise<string> =>
    idOf(ask("/v1/responses", { model: "m-chat", input: "Hi", store: true }));
  const imageParams = { prompt: "A boat" };
  const task = await idOf(ask("/api/ai/tasks", { modelKey: "draw", imageParams }), "taskId");
  let done = await ask(`/api/ai/tasks/${task}?wait=30`, undefined);
  // A wait ends with each step of the task.
  while (done["status"] === "progress") {
    done = await ask(`/api/ai/tasks/${task}?wait=30`, undefined);
  }
  const input = { prompt: "A boat" };
  const upload = await ask("/gemini/upload/v1beta/files", {});
  const image = `/dashscope/api/v1/services/aigc/text2image/image-synthesis`;
  const synthesis = await ask(
    image,
    { model: "wan2.6-t2i", input, parameters: {} },
    { "x-dashscope-async": "enable" },
  );
  return {
    response: await store(),
    task,
    file: String(done["resultUrl"]).split("/").at(-1) ?? "",
    prediction: await idOf(ask("/replicate/v1/models/labs/flux/predictions", { input })),
    dashscopeTask: String((synthesis["output"] as { task_id?: unknown })?.task_id),
    geminiFile: String((upload["file"] as { name?: unknown })?.name),
    geminiCache: await idOf(ask("/gemini/v1beta/cachedContents", geminiCacheBody), "name"),
    geminiOperation: await idOf(
      ask("/gemini/v1beta/models/veo:predictLongRunning", { instances: [input] }),
      "name",
    ),
    geminiInteraction: await idOf(
      ask("/gemini/v1beta/interactions", { model: "gemini-x", input: "Hi" }),
    ),
    replicateFile: await idOf(ask("/replicate/v1/files", {})),
    falJob: await idOf(ask("/fal/queue/fal-ai/flux/schnell", input), "request_id"),
    known: {
      account_id: victim.accountId,
      key_id: victim.keyId,
      model_key: "m-chat",
      model: "m-chat",
      // Another one: some RPC deletes it.
      response_id: await store(),
      task_id: task,
      currency_code: "USD",
      page_token: "",
    },
  };
}
