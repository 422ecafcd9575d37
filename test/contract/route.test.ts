import { expect, test } from "vitest";
import {
  DialectSchema,
  MediaOperation,
  MediaOperationSchema,
  type Route,
} from "../../gen/uas/http/v1/http_pb.ts";
import { routeTable, type RestRoute } from "../../src/edge/rest/route-table.ts";
import { findServices } from "./services.ts";

const dialects = new Map<number, string>(
  DialectSchema.values.map(({ number, name }) => [number, name.replace("DIALECT_", "")]),
);

async function findRoutes(): Promise<RestRoute[]> {
  return routeTable(await findServices());
}

function describe({ route, method: rpc }: RestRoute): string {
  const { method, path, dialect, whenHeader, whenQuery, ...flags } = route;
  const set = Object.entries(flags).filter(([, value]) => value === true);
  return [
    method,
    path,
    ...(whenHeader === "" ? [] : [`if ${whenHeader}`]),
    ...(whenQuery === "" ? [] : [`if ?${whenQuery}=true`]),
    dialects.get(dialect),
    ...set.map(([name]) => name),
    ...(route.mediaOperation === MediaOperation.UNSPECIFIED
      ? []
      : [MediaOperationSchema.value[route.mediaOperation]?.localName]),
    `${rpc.parent.typeName.replace(/^uas\./, "")}/${rpc.name}`,
  ].join(" ");
}

test("the documented HTTP surface, aliases included, is exactly this", async () => {
  const routes = (await findRoutes()).map(describe);
  expect(routes).toEqual([
    "GET /v1/credits PLATFORM billing.v1.BillingService/GetCredits",
    "GET /v1/v1/credits PLATFORM billing.v1.BillingService/GetCredits",
    "POST /v1/chat/completions CHAT_COMPLETIONS inference.v1.InferenceService/Exchange",
    "POST /api/ai/chat/completions CHAT_COMPLETIONS platformAliases inference.v1.InferenceService/Exchange",
    "POST /api/ai/generate CHAT_COMPLETIONS platformAliases inference.v1.InferenceService/Exchange",
    "POST /api/ai/stream-generate CHAT_COMPLETIONS alwaysStream platformAliases inference.v1.InferenceService/Exchange",
    "POST /v1/responses RESPONSES inference.v1.InferenceService/Exchange",
    "POST /v1/responses/compact RESPONSES compact inference.v1.InferenceService/Exchange",
    "GET /v1/responses RESPONSES webSocket inference.v1.InferenceService/Exchange",
    "POST /v1/messages MESSAGES inference.v1.InferenceService/Exchange",
    "POST /v1/v1/chat/completions CHAT_COMPLETIONS inference.v1.InferenceService/Exchange",
    "POST /v1/v1/responses RESPONSES inference.v1.InferenceService/Exchange",
    "POST /v1/v1/responses/compact RESPONSES compact inference.v1.InferenceService/Exchange",
    "GET /v1/v1/responses RESPONSES webSocket inference.v1.InferenceService/Exchange",
    "POST /v1/v1/messages MESSAGES inference.v1.InferenceService/Exchange",
    "POST /v1/messages/count_tokens MESSAGES inference.v1.InferenceService/CountTokens",
    "POST /v1/responses/input_tokens RESPONSES inference.v1.InferenceService/CountTokens",
    "POST /v1/v1/messages/count_tokens MESSAGES inference.v1.InferenceService/CountTokens",
    "POST /v1/v1/responses/input_tokens RESPONSES inference.v1.InferenceService/CountTokens",
    "POST /v1/embeddings CHAT_COMPLETIONS inference.v1.InferenceService/Embed",
    "POST /v1/v1/embeddings CHAT_COMPLETIONS inference.v1.InferenceService/Embed",
    "POST /v1/rerank RERANK inference.v1.InferenceService/Rerank",
    "POST /v2/rerank RERANK_V2 inference.v1.InferenceService/Rerank",
    "POST /v1/v1/rerank RERANK inference.v1.InferenceService/Rerank",
    "POST /v1/moderations CHAT_COMPLETIONS inference.v1.InferenceService/Moderate",
    "POST /v1/v1/moderations CHAT_COMPLETIONS inference.v1.InferenceService/Moderate",
    "POST /v1/completions CHAT_COMPLETIONS inference.v1.InferenceService/Complete",
    "POST /v1/v1/completions CHAT_COMPLETIONS inference.v1.InferenceService/Complete",
    "GET /v1/models CHAT_COMPLETIONS omitRequestId inference.v1.InferenceService/ListModels",
    "GET /api/ai/models PLATFORM omitRequestId inference.v1.InferenceService/ListModels",
    "GET /v1/models if anthropic-version MESSAGES omitRequestId inference.v1.InferenceService/ListModels",
    "GET /v1/v1/models CHAT_COMPLETIONS omitRequestId inference.v1.InferenceService/ListModels",
    "GET /v1/v1/models if anthropic-version MESSAGES omitRequestId inference.v1.InferenceService/ListModels",
    "GET /v1/models/{model_key=**} CHAT_COMPLETIONS omitRequestId inference.v1.InferenceService/GetModel",
    "GET /v1/models/{model_key=**} if anthropic-version MESSAGES omitRequestId inference.v1.InferenceService/GetModel",
    "GET /v1/v1/models/{model_key=**} CHAT_COMPLETIONS omitRequestId inference.v1.InferenceService/GetModel",
    "GET /v1/v1/models/{model_key=**} if anthropic-version MESSAGES omitRequestId inference.v1.InferenceService/GetModel",
    "POST /v1/images/generations CHAT_COMPLETIONS GENERATE_IMAGES inference.v1.MediaService/ExchangeMedia",
    "POST /v1/audio/speech CHAT_COMPLETIONS SPEAK inference.v1.MediaService/ExchangeMedia",
    "POST /v1/images/edits CHAT_COMPLETIONS EDIT_IMAGES inference.v1.MediaService/ExchangeMedia",
    "POST /v1/images/variations CHAT_COMPLETIONS VARY_IMAGES inference.v1.MediaService/ExchangeMedia",
    "POST /v1/audio/transcriptions CHAT_COMPLETIONS TRANSCRIBE inference.v1.MediaService/ExchangeMedia",
    "POST /v1/audio/translations CHAT_COMPLETIONS TRANSLATE inference.v1.MediaService/ExchangeMedia",
    "POST /v1/v1/images/generations CHAT_COMPLETIONS GENERATE_IMAGES inference.v1.MediaService/ExchangeMedia",
    "POST /v1/v1/audio/speech CHAT_COMPLETIONS SPEAK inference.v1.MediaService/ExchangeMedia",
    "POST /v1/v1/images/edits CHAT_COMPLETIONS EDIT_IMAGES inference.v1.MediaService/ExchangeMedia",
    "POST /v1/v1/images/variations CHAT_COMPLETIONS VARY_IMAGES inference.v1.MediaService/ExchangeMedia",
    "POST /v1/v1/audio/transcriptions CHAT_COMPLETIONS TRANSCRIBE inference.v1.MediaService/ExchangeMedia",
    "POST /v1/v1/audio/translations CHAT_COMPLETIONS TRANSLATE inference.v1.MediaService/ExchangeMedia",
    "GET /v1/responses/{response_id} RESPONSES inference.v1.ResponseService/GetResponse",
    "GET /v1/v1/responses/{response_id} RESPONSES inference.v1.ResponseService/GetResponse",
    "GET /v1/responses/{response_id} if ?stream=true RESPONSES inference.v1.ResponseService/StreamResponse",
    "GET /v1/v1/responses/{response_id} if ?stream=true RESPONSES inference.v1.ResponseService/StreamResponse",
    "POST /v1/responses/{response_id}/cancel RESPONSES inference.v1.ResponseService/CancelResponse",
    "POST /v1/v1/responses/{response_id}/cancel RESPONSES inference.v1.ResponseService/CancelResponse",
    "DELETE /v1/responses/{response_id} RESPONSES inference.v1.ResponseService/DeleteResponse",
    "DELETE /v1/v1/responses/{response_id} RESPONSES inference.v1.ResponseService/DeleteResponse",
    "GET /v1/responses/{response_id}/input_items RESPONSES inference.v1.ResponseService/ListInputItems",
    "GET /v1/v1/responses/{response_id}/input_items RESPONSES inference.v1.ResponseService/ListInputItems",
    "GET /v1/key PLATFORM key.v1.KeyService/GetCurrentKey",
    "GET /v1/v1/key PLATFORM key.v1.KeyService/GetCurrentKey",
    "POST /api/ai/tasks PLATFORM task.v1.TaskService/SubmitTask",
    "GET /api/ai/tasks/{task_id} PLATFORM task.v1.TaskService/GetTask",
    "POST /api/ai/tasks/{task_id}/cancel PLATFORM task.v1.TaskService/CancelTask",
    "GET /api/ai/tasks PLATFORM task.v1.TaskService/ListTasks",
    "GET /api/ai/models/{model_key=**}/schema PLATFORM omitRequestId task.v1.TaskService/GetModelSchema",
  ]);
});

test("no two routes are the same, and each says its method, path and dialect", async () => {
  const routes: Route[] = (await findRoutes()).map(({ route }) => route);
  const places = routes.map(({ method, path, whenHeader, whenQuery }) =>
    [method, path, whenHeader, whenQuery].join(" "),
  );
  expect(new Set(places).size).toBe(places.length);
  for (const { method, path, dialect, whenHeader, whenQuery } of routes) {
    expect(method).toMatch(/^(GET|POST|DELETE)$/);
    expect(path).toMatch(/^\/[a-z0-9/_{}=*-]+$/);
    expect(dialect).toBeGreaterThan(0);
    expect(whenHeader).toBe(whenHeader.toLowerCase());
    if (whenQuery !== "") expect([method, whenHeader]).toEqual(["GET", ""]);
  }
});

test("every path under /v1 is served under /v1/v1, too, and nothing else is (R-TXT-6)", async () => {
  const paths = new Set((await findRoutes()).map(({ route }) => route.path));
  const doubled = [...paths].filter((path) => path.startsWith("/v1/v1/"));
  const single = [...paths].filter((path) => path.startsWith("/v1/") && !doubled.includes(path));
  expect(single.length).toBeGreaterThan(0);
  expect(doubled.toSorted()).toEqual(single.map((path) => `/v1${path}`).toSorted());
});
