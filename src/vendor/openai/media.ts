/** Only OpenAI's form: the paths for images and audio, which compatible vendors share. */
import type { MediaOperationName } from "../vendor.ts";

/** Below the base URL. */
export const openaiMedia = {
  generateImages: "/images/generations",
  speak: "/audio/speech",
} as const satisfies Readonly<Record<MediaOperationName, string>>;
