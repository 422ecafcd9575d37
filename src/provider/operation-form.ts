/** Requests and replies of vendors that have an operation in another form than the caller. */
import { replyBytesMax } from "../core/limits.ts";
import { joinBuffers } from "../core/bytes.ts";
import { type JsonRecord, parseRecord, UnreadableReplyError } from "../wire/json/value.ts";
import { bufferedBody, type VendorReply } from "./reply.ts";
import type { VendorCall, VendorOperation } from "./vendor.ts";

/** The form that a vendor gives an operation. Pure. */
export interface OperationForm {
  /** Whether a request needs it; others pass as they are. Default: all do. */
  applies?(body: JsonRecord): boolean;
  /**
   * The body for the vendor.
   *
   * @param body the caller's, with the vendor's name of the model
   * @throws GatewayError INVALID_REQUEST, naming a member that the vendor has no counterpart of
   */
  request(body: JsonRecord, call: VendorCall): JsonRecord;
  /**
   * The body for the caller.
   *
   * @param reply the vendor's, as parsed JSON
   * @param asked the caller's body
   * @throws UnreadableReplyError
   */
  reply(reply: unknown, asked: JsonRecord): JsonRecord;
}

/**
 * Sends requests in the vendor's form, and gives its replies the caller's. Refusals pass as they
 * are.
 */
export function inForm(
  form: OperationForm,
  send: VendorOperation["send"],
): VendorOperation["send"] {
  return async (call) => {
    const asked = parseRecord(bodyText(call));
    if (asked === undefined) throw new TypeError("an operation without a JSON body");
    if (form.applies?.(asked) === false) return send(call);
    const body = [Buffer.from(JSON.stringify(form.request(asked, call)))];
    const reply = await send({ ...call, body, query: "" });
    if (reply.status < 200 || reply.status > 299) return reply;
    return { ...reply, ...jsonReply(form.reply(await parsed(reply), asked)) };
  };
}

/** The text of a call's body. @throws TypeError if it is a form */
export function bodyText({ body }: VendorCall): string {
  if ("open" in body) throw new TypeError("this vendor takes no forms");
  return joinBuffers(body).toString("utf8");
}

/** A complete reply in JSON. */
export function jsonReply(body: JsonRecord, status = 200): VendorReply {
  const headers = { "content-type": "application/json" };
  return { status, headers, body: bufferedBody(Buffer.from(JSON.stringify(body))) };
}

async function parsed({ body }: VendorReply): Promise<unknown> {
  const bytes = await body.whole(replyBytesMax);
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    throw new UnreadableReplyError("the vendor's reply is not JSON");
  }
}
