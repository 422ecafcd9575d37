/**
 * One question to one vendor for a text that nobody waits for. As a call it goes through the codecs and refusals
 * of text generation, but it holds nothing and has no record of its own: the task's end settles the task's hold,
 * and writes the record.
 */
import { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import type { ModelConfig } from "../config/config.ts";
import { UnreadableReplyError } from "../dialect/codec.ts";
import { HttpFailure } from "../http/failure.ts";
import { TaskStopped, type TaskTaken } from "../vendor/task.ts";
import { upstreamRequestId } from "./headers.ts";
import { estimateTokens, type Metered, meter } from "./metering.ts";
import type {
  Chunk,
  PlannedRoute,
  PreparedCall,
  ReadRequest,
  ReplyStream,
} from "./pipeline/adapter.ts";
import { readAnswer } from "./pipeline/read-answer.ts";
import { brokenText, refusedText, unopenedText } from "./text-failure.ts";
import { textUsage } from "./text-reply.ts";
import { measureRequest } from "./tokens/request-size.ts";
import { vendorFault } from "./translation.ts";
import { askInOrder, type OpenReply, type Upstream } from "./upstream.ts";

/** What to ask. */
export interface TextExchange<Out extends Chunk> {
  /** It asks for a stream: so nothing between the vendor and here takes a long silence for a dead connection. */
  readonly request: ReadRequest<Out>;
  readonly model: ModelConfig;
  readonly planned: PlannedRoute;
  readonly signal: AbortSignal;
  /** Takes what comes, in order. What it throws ends the exchange. */
  readonly take: (out: Out) => void;
}

/** What came of it. */
export interface MadeText {
  readonly metered: Metered;
  /** The vendor's own id of the exchange; empty: it told none. */
  readonly upstreamId: string;
  /** What the vendor's style could not carry of the request. */
  readonly dropped: readonly string[];
}

/**
 * Asks, once, and for as long as the signal lets: a long text is no vendor that hangs.
 *
 * @throws TaskRefused where nothing runs at the vendor, or its reply was none; HttpFailure where it is not known
 *   whether anything runs, whose cause tells whether anything was sent
 */
export async function exchangeText<Out extends Chunk>(
  upstream: Upstream,
  asked: TextExchange<Out>,
): Promise<MadeText> {
  const { request, model, planned, signal } = asked;
  let prepared: PreparedCall;
  let open: OpenReply;
  try {
    prepared = request.prepare(model, planned);
    const call = {
      dialect: planned.dialect ?? Dialect.UNSPECIFIED,
      model: planned.route.model,
      query: planned.dialect === request.dialect ? request.query : "",
      headers: prepared.headers,
      body: prepared.body,
      stream: true,
      isPatient: true,
      signal,
    };
    open = await askInOrder(upstream, [planned], { callFor: () => call });
  } catch (error) {
    throw unopenedText(error);
  }
  const progress: Progress = {};
  try {
    return await read(open, prepared, { ...asked, progress });
  } catch (error) {
    throw signal.aborted ? new TaskStopped(takenBy(progress, prepared), error) : brokenText(error);
  } finally {
    open.close();
  }
}

/** How far a stream is. */
interface Progress {
  stream?: Pick<ReplyStream<Chunk>, "usage" | "textBytes">;
}

/** As for a client that leaves (R-MON-8): the input and what came, and nothing where nothing did. */
function takenBy({ stream }: Progress, prepared: PreparedCall): TaskTaken | undefined {
  const metered = meter({
    reported: stream?.usage,
    inputTokens: stream?.usage === undefined ? estimateInput(prepared) : 0,
    textBytes: stream?.textBytes ?? 0,
    isWhole: false,
  });
  return metered.isCharged ? textUsage(metered) : undefined;
}

async function read<Out extends Chunk>(
  { reply, refusal }: OpenReply,
  prepared: PreparedCall,
  { request, planned, take, progress }: TextExchange<Out> & { readonly progress: Progress },
): Promise<MadeText> {
  if (refusal !== undefined) {
    throw refusedText(vendorFault({ ...refusal, status: reply.status }, planned.dialect));
  }
  const whole = await readAnswer(reply);
  const stream = whole === undefined ? request.stream(planned, false, reply) : undefined;
  const answer = whole === undefined ? undefined : request.whole(whole, planned, reply);
  if (answer !== undefined) take(answer.body);
  if (stream !== undefined) {
    progress.stream = stream;
    while (await reply.body.ready()) {
      const out = stream.push(reply.body.take());
      if (out.length > 0) take(out);
      if (stream.failed) throw new UnreadableReplyError("an error in the stream");
    }
    const last = stream.end();
    if (last.length > 0) take(last);
    if (!stream.finished) throw new HttpFailure("reset", "the stream was cut");
  }
  const { usage: reported, textBytes = 0 } = answer ?? stream ?? {};
  const metered = meter({
    reported,
    // Counted only where it is charged by.
    inputTokens: reported === undefined ? estimateInput(prepared) : 0,
    textBytes,
    isWhole: true,
  });
  return { metered, upstreamId: upstreamRequestId(reply.headers), dropped: prepared.dropped };
}

function estimateInput({ body }: PreparedCall): number {
  const bytes = Buffer.concat(body);
  const { mediaBytes, mediaTokens } = measureRequest(bytes);
  return estimateTokens(bytes.length - mediaBytes) + mediaTokens;
}
