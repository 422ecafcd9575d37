/** Only demo: it computes its own results. WAV files with a tune that nobody will take for speech. */
import { demoNote } from "./image.ts";

/** Samples per second; 16 bits each, mono. Enough for a tune, at 32 kB a second. */
const sampleRate = 16_000;

/** The pentatonic scale, in semitones: any two of its notes sound well together. */
const scale = [0, 2, 4, 7, 9, 12, 14, 16];

const notesPerSecond = 4;

/**
 * Renders a tune as a WAV file.
 *
 * @param source 16 bytes that determine the tune
 * @param seconds its length
 */
export function renderTune(source: Buffer, seconds: number): Buffer {
  const samples = Buffer.alloc(seconds * sampleRate * 2);
  const noteSamples = sampleRate / notesPerSecond;
  for (let note = 0; note < seconds * notesPerSecond; note += 1) {
    const tone = scale[(source[note % source.length] ?? 0) % scale.length] ?? 0;
    const hertz = 261.63 * 2 ** (tone / 12);
    for (let at = 0; at < noteSamples; at += 1) {
      // Each note fades out; otherwise there would be a click between two.
      const loud = 9_000 * Math.sin((Math.PI * at) / noteSamples);
      const value = Math.round(loud * Math.sin((2 * Math.PI * hertz * at) / sampleRate));
      samples.writeInt16LE(value, (note * noteSamples + at) * 2);
    }
  }
  return wav(samples);
}

/** A PCM file with the demo note in its metadata. */
function wav(samples: Buffer): Buffer {
  const format = Buffer.alloc(16);
  format.writeUInt16LE(1, 0);
  format.writeUInt16LE(1, 2);
  format.writeUInt32LE(sampleRate, 4);
  format.writeUInt32LE(sampleRate * 2, 8);
  format.writeUInt16LE(2, 12);
  format.writeUInt16LE(16, 14);
  const comment = chunk("ICMT", Buffer.from(`${demoNote}\0`, "latin1"));
  const parts = [
    Buffer.from("WAVE", "latin1"),
    chunk("fmt ", format),
    chunk("LIST", Buffer.concat([Buffer.from("INFO", "latin1"), comment])),
    chunk("data", samples),
  ];
  return chunk("RIFF", Buffer.concat(parts));
}

/** A RIFF chunk; a chunk of odd length is padded by one byte. */
function chunk(type: string, data: Buffer): Buffer {
  const head = Buffer.alloc(8);
  head.write(type, "latin1");
  head.writeUInt32LE(data.length, 4);
  return Buffer.concat([head, data, Buffer.alloc(data.length % 2)]);
}
