/** Calls that are a job to their vendor: it may go on with one, and bill it, where no answer came (R-ERR-5). */
import { ErrorCode, GatewayError } from "../errors.ts";
import { HttpFailure } from "../http/failure.ts";
import type { VendorBody, VendorReply } from "../vendor/vendor.ts";

/** The reply, whose failures tell the client not to ask again: its own repetition would be a second job. */
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
  // Nothing was sent, or nobody is there to be told.
  if (kind === "connect" || kind === "connect_timeout" || kind === "aborted") return error;
  return new GatewayError(
    ErrorCode.UPSTREAM_SUBMIT_UNKNOWN,
    "The model's vendor gave no answer, but may have done what was asked: do not send it again",
    { cause: error },
  );
}
