/** Only OpenAI's form: the paths for images and audio, which compatible vendors share. */
import type { MediaOperationName } from "../vendor.ts";

/** Below the base URL. */
export const openaiMedia = {
  generateImages: "/images/generations",
  editImages: "/images/edits",
  varyImages: "/images/variations",
  speak: "/audio/speech",
  transcribe: "/audio/transcriptions",
  translate: "/audio/translations",
} as const satisfies Readonly<Record<MediaOperationName, string>>;
