import type { CallRow } from "../../../../src/billing/calls/call-row.ts";

/** The record of a call. */
export function callRow(id: string, accountId: string, rest: Partial<CallRow> = {}): CallRow {
  return {
    id,
    request_id: id,
    account_id: accountId,
    key_id: "",
    model: "demo",
    vendor: "demo",
    path: "/v1/chat/completions",
    stream: false,
    status: 200,
    error_code: "",
    ending: 1,
    usage_source: 1,
    input_tokens: 10,
    cached_input_tokens: 0,
    cache_write_tokens: 0,
    output_tokens: 5,
    reasoning_tokens: 0,
    cost: "0",
    held: "0",
    price_version: "",
    start_time: "2026-01-02T03:04:05.678Z",
    duration_ms: 12,
    first_byte_ms: 3,
    upstream_request_id: "",
    dropped: "",
    discount_bp: 0,
    charged: true,
    images: null,
    second_micros: null,
    ...rest,
  };
}
