/**
 * Payloads and their bytes, for good: a changed byte is a signature that receivers' stored copies
 * refuse.
 */
import type { WebhookPayload } from "../../../src/webhook/payload.ts";

const usage = { promptTokens: 12, completionTokens: 34, totalTokens: 46 };
const time = new Date("2026-11-21T09:30:00.007Z");
const facts = {
  eventId: "01890000-0000-7000-8000-000000000001",
  modelKey: "flux",
  requestId: "req-1",
  sequence: 2,
  taskId: "01890000-0000-7000-8000-000000000002",
};
const base: WebhookPayload = {
  callbackId: "order-1",
  status: "progress",
  progress: 50,
  resultUrl: null,
  resultContent: null,
  error: null,
  errorCode: null,
  usage: { promptTokens: 0, completionTokens: 0, totalTokens: 0 },
  time,
  facts,
};
const data =
  '"event_id":"01890000-0000-7000-8000-000000000001","model_key":"flux","request_id":"req-1",';
const rest = '"sequence":2,"task_id":"01890000-0000-7000-8000-000000000002"';
const zero = '"usage":{"completionTokens":0,"promptTokens":0,"totalTokens":0}';

/** The vectors. */
export const goldenVectors: readonly {
  readonly name: string;
  readonly payload: WebhookPayload;
  readonly body: string;
  readonly isAltered: boolean;
}[] = [
  {
    name: "progress",
    payload: base,
    body: `{"callback_id":"order-1","error":null,"error_code":null,"external_data":{${data}${rest}},"progress":50,"result_content":null,"result_url":null,"status":"progress","timestamp":"2026-11-21T09:30:00.007Z",${zero}}`,
    isAltered: false,
  },
  {
    name: "completed with a file",
    payload: {
      ...base,
      status: "completed",
      progress: 100,
      usage,
      resultUrl: "https://f.example/r/abc.png",
    },
    body: `{"callback_id":"order-1","error":null,"error_code":null,"external_data":{${data}${rest}},"progress":100,"result_content":null,"result_url":"https://f.example/r/abc.png","status":"completed","timestamp":"2026-11-21T09:30:00.007Z","usage":{"completionTokens":34,"promptTokens":12,"totalTokens":46}}`,
    isAltered: false,
  },
  {
    name: "completed with a text that is changed",
    payload: {
      ...base,
      status: "completed",
      progress: 100,
      usage,
      resultContent: '<é漢😀>\t"\\/\n\u0000\u2028\ud800',
    },
    body: `{"callback_id":"order-1","error":null,"error_code":null,"external_data":{${data}"result_altered":true,${rest}},"progress":100,"result_content":"<é漢😀>\\t\\"\\\\/\\n\\n\ufffd","result_url":null,"status":"completed","timestamp":"2026-11-21T09:30:00.007Z","usage":{"completionTokens":34,"promptTokens":12,"totalTokens":46}}`,
    isAltered: true,
  },
  {
    name: "failed",
    payload: {
      ...base,
      status: "failed",
      error: "the vendor refused the prompt",
      errorCode: "content_rejected",
    },
    body: `{"callback_id":"order-1","error":"the vendor refused the prompt","error_code":"content_rejected","external_data":{${data}${rest}},"progress":50,"result_content":null,"result_url":null,"status":"failed","timestamp":"2026-11-21T09:30:00.007Z",${zero}}`,
    isAltered: false,
  },
  {
    name: "cancelled, with what a vendor said",
    payload: {
      ...base,
      status: "cancelled",
      extra: {
        vendor: "replicate",
        vendor_payload: '{"id":"x","n":0.5}',
        z: [1, "a", null],
        Bad: 1,
        n: 0.5,
      },
    },
    body: `{"callback_id":"order-1","error":null,"error_code":null,"external_data":{"event_id":"01890000-0000-7000-8000-000000000001","model_key":"flux","n":"0.5","request_id":"req-1","result_altered":true,${rest},"vendor":"replicate","vendor_payload":"{\\"id\\":\\"x\\",\\"n\\":0.5}","z":[1,"a",null]},"progress":50,"result_content":null,"result_url":null,"status":"cancelled","timestamp":"2026-11-21T09:30:00.007Z",${zero}}`,
    isAltered: true,
  },
];
