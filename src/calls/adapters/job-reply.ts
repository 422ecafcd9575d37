/**
 * Replies of calls that are jobs at their vendors: once sent, they may be running and billed
 * without an answer.
 */
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { HttpFailure } from "../../http/failure.ts";
import type { VendorBody, VendorReply } from "../../provider/reply.ts";

/**
 * The reply of a call that is a job at its vendor (R-ERR-5). Its failures say not to retry: the
 * vendor may run and bill the job without an answer, and a retry would be a second one.
 */
export async function asJob(sent: Promise<VendorReply>): Promise<VendorReply> {
  try {
    const reply = await sent;
    return { ...reply, body: new JobBody(reply.body) };
  } catch (error) {
    throw jobError(error);
  }
}

class JobBody implements VendorBody {
  readonly #body: VendorBody;

  constructor(body: VendorBody) {
    this.#body = body;
  }

  ready(): Promise<boolean> {
    return this.#body.ready();
  }

  take(): readonly Buffer[] {
    return this.#body.take();
  }

  async whole(bytesMax: number): Promise<Buffer> {
    try {
      return await this.#body.whole(bytesMax);
    } catch (error) {
      throw jobError(error);
    }
  }

  cancel(): void {
    this.#body.cancel();
  }
}

function jobError(error: unknown): unknown {
  if (!(error instanceof HttpFailure)) return error;
  const { kind } = error;
  // Nothing was sent, or the client has disconnected.
  if (kind === "connect" || kind === "connect_timeout" || kind === "aborted") return error;
  return new GatewayError(
    ErrorCode.UPSTREAM_SUBMIT_UNKNOWN,
    "The model's vendor gave no answer, but may have processed the request: do not send it again",
    { cause: error },
  );
}
