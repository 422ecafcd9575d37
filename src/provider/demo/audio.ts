/**
 * Only the demo vendor renders audio itself, a tune in place of speech, and measures the length of
 * recordings.
 */
import type { JsonRecord } from "../../wire/json/value.ts";
import { audioSeconds } from "../media/length.ts";
import { jsonReply } from "../operation-form.ts";
import { bufferedBody, type VendorReply } from "../reply.ts";
import type { VendorCall } from "../vendor.ts";
import { choiceMember, readBody, readForm, textsIn } from "./request.ts";

/** Samples per second; 16 bits each, mono. */
const sampleRate = 16_000;

/** The pentatonic scale, in semitones: any two of its notes sound well together. */
const scale = [0, 2, 4, 7, 9, 12, 14, 16];

const notesPerSecond = 4;

/** The length of the header of a WAV file. */
const headBytes = 44;

/**
 * Renders a tune as a WAV file.
 *
 * @param source bytes that determine the tune
 * @param seconds its length
 */
export function renderTune(source: Buffer, seconds: number): Buffer {
  const file = Buffer.alloc(headBytes + seconds * sampleRate * 2);
  file.write("RIFF....WAVEfmt ", "latin1");
  file.writeUInt32LE(file.length - 8, 4);
  file.writeUInt32LE(16, 16);
  file.writeUInt16LE(1, 20); // PCM
  file.writeUInt16LE(1, 22); // mono
  file.writeUInt32LE(sampleRate, 24);
  file.writeUInt32LE(sampleRate * 2, 28);
  file.writeUInt16LE(2, 32);
  file.writeUInt16LE(16, 34);
  file.write("data", 36, "latin1");
  file.writeUInt32LE(file.length - headBytes, 40);
  const noteSamples = sampleRate / notesPerSecond;
  for (let at = 0; at < seconds * sampleRate; at += 1) {
    const note = Math.floor(at / noteSamples);
    const tone = scale[(source[note % source.length] ?? 0) % scale.length] ?? 0;
    const hertz = 261.63 * 2 ** (tone / 12);
    // Each note fades in and out; otherwise there would be a click between two.
    const loud = 9_000 * Math.sin((Math.PI * (at % noteSamples)) / noteSamples);
    const value = Math.round(loud * Math.sin((2 * Math.PI * hertz * at) / sampleRate));
    file.writeInt16LE(value, headBytes + at * 2);
  }
  return file;
}

/** Speaks a text: a tune of its length, at most 60 s. @throws DemoRequestError */
export function speak(call: VendorCall): VendorReply {
  const body = readBody(call, ["audio"]);
  const format = choiceMember(body, "response_format", ["wav", "pcm"]);
  choiceMember(body, "stream_format", ["audio"]);
  const text = textsIn(body["input"]).join("");
  const file = renderTune(
    Buffer.from(text),
    Math.min(60, Math.max(1, Math.ceil(text.length / 12))),
  );
  return fileReply(format === "wav" ? file : file.subarray(headBytes), `audio/${format}`);
}

/**
 * Answers with the size of a recording, for transcriptions and translations. @throws
 * DemoRequestError
 */
export async function transcribe(call: VendorCall): Promise<VendorReply> {
  const form = await readForm(call, ["audio"]);
  const fields: JsonRecord = Object.fromEntries(form);
  const format = choiceMember(fields, "response_format", [
    "json",
    "verbose_json",
    "text",
    "srt",
    "vtt",
  ]);
  const file = form.get("file");
  const bytes = file instanceof Blob ? Buffer.from(await file.arrayBuffer()) : Buffer.alloc(0);
  const seconds = audioSeconds(bytes, "wav") ?? Math.ceil(bytes.length / 3_000);
  const text = `This is the demo model of UAS Gateway, not an AI. Your recording has ${bytes.length} bytes.`;
  const usage = { type: "duration", seconds: Math.ceil(seconds) };
  if (fields["stream"] === "true") {
    const deltas = text.split(/(?<=\s)/).map((delta) => ({ type: "transcript.text.delta", delta }));
    const events = [...deltas, { type: "transcript.text.done", text, usage }];
    const lines = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
    return fileReply(lines, "text/event-stream");
  }
  if (format === "json") return jsonReply({ text, usage });
  if (format === "verbose_json") {
    const about = { task: "transcribe", language: "english", duration: seconds };
    return jsonReply({ ...about, text, usage });
  }
  const end = new Date(Math.min(seconds, 86_399) * 1_000).toISOString().slice(11, 23);
  const forms: Record<string, string> = {
    text: `${text}\n`,
    srt: `1\n00:00:00,000 --> ${end.replace(".", ",")}\n${text}\n`,
    vtt: `WEBVTT\n\n00:00:00.000 --> ${end}\n${text}\n`,
  };
  return fileReply(forms[format] ?? text, "text/plain; charset=utf-8");
}

function fileReply(content: Buffer | string, contentType: string): VendorReply {
  const headers = { "content-type": contentType };
  return { status: 200, headers, body: bufferedBody(Buffer.from(content)) };
}
