/** Only demo: it makes and reads media itself. Speech, the text of recordings, and images from images, in OpenAI's form. */
import { createHash } from "node:crypto";
import { type JsonRecord } from "../../dialect/json/value.ts";
import { audioSeconds } from "../media-length.ts";
import { bodyText, jsonReply } from "../operation-form.ts";
import { bufferedBody, type VendorReply } from "../reply.ts";
import type { VendorCall } from "../vendor.ts";
import { renderTune } from "./audio.ts";
import { renderImage } from "./image.ts";
import { DemoRequestError, numberMember, readBody, refuse, requireModel } from "./request.ts";

/** Letters of a second of speech, as people speak. */
const charactersPerSecond = 12;

/** The longest tune, in seconds. */
const secondsMax = 60;

/** Speaks a text: a tune of its length, that nobody will take for speech. @throws DemoRequestError */
export function speak(call: VendorCall): VendorReply {
  const body = readBody(bodyText(call));
  requireModel(body, ["audio"]);
  const { input, response_format: format = "wav", stream_format: streamed = "audio" } = body;
  if (format !== "wav" && format !== "pcm") {
    throw refuse(
      "response_format",
      'the demo vendor makes "wav" and "pcm"; send one of them, or none',
    );
  }
  if (streamed !== "audio") throw refuse("stream_format", 'the demo vendor has "audio" only');
  const speed = numberMember(body, "speed", { least: 0.25, most: 4 }) ?? 1;
  const text = String(input);
  const seconds = Math.ceil(text.length / charactersPerSecond / speed);
  const file = renderTune(digestOf(text), Math.min(secondsMax, Math.max(1, seconds)));
  const bytes = format === "wav" ? file : file.subarray(file.length - wavData(file));
  return fileReply(bytes, `audio/${format}`);
}

/** The bytes of the samples: the last chunk of a file that {@link renderTune} makes. */
function wavData(file: Buffer): number {
  return file.readUInt32LE(file.indexOf("data", 0, "latin1") + 4);
}

/** Reads a recording as far as it can: its name and length. @throws DemoRequestError */
export async function transcribe(call: VendorCall): Promise<VendorReply> {
  const form = await readForm(call);
  requireModel({ model: form.get("model") }, ["audio"]);
  const file = form.get("file");
  if (!(file instanceof Blob)) throw refuse("file", "expected a recording");
  const bytes = Buffer.from(await file.arrayBuffer());
  const seconds = audioSeconds(bytes, "wav") ?? Math.ceil(bytes.length / 3_000);
  const text = `This is the demo model of UAS Gateway, not an AI. Your recording has ${bytes.length} bytes.`;
  const usage = { type: "duration", seconds: Math.ceil(seconds) };
  if (form.get("stream") === "true") {
    const events = [
      ...text.split(/(?<=\s)/).map((delta) => ({ type: "transcript.text.delta", delta })),
      { type: "transcript.text.done", text, usage },
    ];
    const lines = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
    return fileReply(Buffer.from(lines), "text/event-stream");
  }
  const format = form.get("response_format") ?? "json";
  const end = timeOf(seconds);
  switch (format) {
    case "json":
      return jsonReply({ text, usage });
    case "verbose_json":
      return jsonReply({
        ...{ task: "transcribe", language: "english", duration: seconds, text, usage },
        segments: [
          {
            id: 0,
            seek: 0,
            start: 0,
            end: seconds,
            text,
            tokens: [],
            temperature: 0,
            avg_logprob: 0,
            compression_ratio: 1,
            no_speech_prob: 0,
          },
        ],
      });
    case "text":
      return fileReply(Buffer.from(`${text}\n`), "text/plain; charset=utf-8");
    case "srt":
      return fileReply(
        Buffer.from(`1\n00:00:00,000 --> ${end.replace(".", ",")}\n${text}\n`),
        "text/plain; charset=utf-8",
      );
    case "vtt":
      return fileReply(
        Buffer.from(`WEBVTT\n\n00:00:00.000 --> ${end}\n${text}\n`),
        "text/plain; charset=utf-8",
      );
    default:
      throw refuse("response_format", "expected json, verbose_json, text, srt or vtt");
  }
}

/** `01:02:03.500` */
function timeOf(seconds: number): string {
  return new Date(Math.min(seconds, 86_399) * 1_000).toISOString().slice(11, 23);
}

const sizes = ["256x256", "512x512", "1024x1024"];

/** Makes images from images: the same files and prompt give the same images. @throws DemoRequestError */
export async function editImages(call: VendorCall): Promise<VendorReply> {
  const form = call.contentType === undefined ? undefined : await readForm(call);
  const body: JsonRecord = form ? Object.fromEntries(form) : readBody(bodyText(call));
  requireModel(body, ["image"]);
  const { prompt = "", n = "1", size: sent = "auto", response_format: format = "url" } = body;
  if (body["stream"] === "true" || body["stream"] === true) {
    throw refuse("stream", "the demo vendor does not stream images; leave it out");
  }
  const size = sent === "auto" ? "512x512" : String(sent);
  if (!sizes.includes(size)) throw refuse("size", `expected one of ${sizes.join(", ")}`);
  const hash = createHash("sha256").update(String(prompt));
  for (const value of form?.values() ?? [JSON.stringify(body["images"] ?? body["image"])]) {
    if (typeof value === "string") hash.update(value);
    else hash.update(Buffer.from(await value.arrayBuffer()));
  }
  const source = hash.digest().subarray(0, 16);
  const count = Math.min(10, Math.max(1, Number(n)));
  const side = Number.parseInt(size, 10);
  const images = await Promise.all(
    Array.from({ length: count }, (_none, index) => renderImage(source, { side, index })),
  );
  const data = images.map((image) => {
    const base64 = image.toString("base64");
    return format === "b64_json"
      ? { b64_json: base64 }
      : { url: `data:image/png;base64,${base64}` };
  });
  return jsonReply({ created: Math.floor(Date.now() / 1_000), data });
}

async function readForm(call: VendorCall): Promise<FormData> {
  const { body, contentType = "" } = call;
  if (!("open" in body)) throw new DemoRequestError(400, "expected a form");
  const bytes = Buffer.concat(await Array.fromAsync(body.open()));
  return new Response(bytes, { headers: { "content-type": contentType } }).formData();
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest().subarray(0, 16);
}

function fileReply(bytes: Buffer, contentType: string): VendorReply {
  return { status: 200, headers: { "content-type": contentType }, body: bufferedBody(bytes) };
}
