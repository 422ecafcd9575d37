/** A message while it is written: text, and images read into `data:` addresses. */
import { useState } from "react";

/** The message that is being written. */
export interface Draft {
  readonly text: string;
  readonly images: readonly AttachedImage[];
  /** Why some of the last files were not added. */
  readonly faults: ReadImages["faults"];
  readonly isEmpty: boolean;
  write(text: string): void;
  /** Adds the files that are allowed; `faults` has the others. */
  take(files: readonly File[]): Promise<void>;
  remove(index: number): void;
  clear(): void;
}

/** @param saidBytes the size of the images that the conversation has already */
export function useDraft(saidBytes: number): Draft {
  const [text, write] = useState("");
  const [images, setImages] = useState<readonly AttachedImage[]>([]);
  const [faults, setFaults] = useState<ReadImages["faults"]>([]);
  return {
    text,
    images,
    faults,
    isEmpty: text.trim() === "" && images.length === 0,
    write,
    async take(files) {
      const bytes = images.reduce((sum, each) => sum + each.bytes, saidBytes);
      const taken = await readImages(files, { count: images.length, bytes });
      setImages((before) => [...before, ...taken.images]);
      setFaults(taken.faults);
    },
    remove(index) {
      setImages((before) => before.toSpliced(index, 1));
      setFaults([]);
    },
    clear() {
      write("");
      setImages([]);
      setFaults([]);
    },
  };
}

/** An image, ready to be sent. */
export interface AttachedImage {
  readonly name: string;
  /** `data:<type>;base64,…` */
  readonly url: string;
  /** The size of the file. */
  readonly bytes: number;
}

/** The largest file, in bytes: some vendors refuse more than 5 MB in base64, which is a third more than the file. */
const imageBytesMax = Math.floor(3.5 * 1024 * 1024);

/** The most images in a message. */
const imagesMax = 10;

/** The most that all files of a conversation may have, in bytes: in base64 and with text they stay below the 20 MiB that
 * the gateway accepts. */
const allBytesMax = 14 * 1024 * 1024;

/** The types that the file dialog offers. */
export const imageTypes = "image/png,image/jpeg,image/webp,image/gif";

/** Why a file is not added to a message. */
type ImageFault = "type" | "size" | "count" | "all" | "read";

/** The images among some files, and why the others are none. */
interface ReadImages {
  readonly images: readonly AttachedImage[];
  readonly faults: readonly { readonly name: string; readonly fault: ImageFault }[];
}

/**
 * Reads files as images.
 *
 * @param before the number of images in the message, and the size of those in the conversation
 */
async function readImages(
  files: readonly File[],
  before: { readonly count: number; readonly bytes: number },
): Promise<ReadImages> {
  let { count, bytes } = before;
  const images: AttachedImage[] = [];
  const faults: { name: string; fault: ImageFault }[] = [];
  for (const file of files) {
    const { name, size } = file;
    const read = size > imageBytesMax ? "size" : await readImage(file);
    const fault =
      typeof read === "string"
        ? read
        : count >= imagesMax
          ? "count"
          : bytes + size > allBytesMax
            ? "all"
            : undefined;
    if (fault !== undefined || typeof read === "string") {
      faults.push({ name, fault: fault ?? "read" });
      continue;
    }
    count += 1;
    bytes += size;
    images.push(read);
  }
  return { images, faults };
}

async function readImage(file: File): Promise<AttachedImage | "type" | "read"> {
  try {
    const type = typeOf(new Uint8Array(await file.slice(0, 12).arrayBuffer()));
    if (type === undefined) return "type";
    const url = await addressOf(file.slice(0, file.size, type));
    return { name: file.name, url, bytes: file.size };
  } catch {
    return "read";
  }
}

function addressOf(blob: Blob): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const reader = new FileReader();
  reader.addEventListener("load", () => resolve(reader.result as string));
  reader.addEventListener("error", () => reject(reader.error ?? new Error("not read")));
  reader.readAsDataURL(blob);
  return promise;
}

/** The type of a file by its first bytes: its name may be wrong, and vendors check the bytes too. */
function typeOf(bytes: Uint8Array): string | undefined {
  const head = String.fromCodePoint(...bytes);
  if (head.startsWith("\x89PNG\r\n\x1a\n")) return "image/png";
  if (head.startsWith("\xff\xd8\xff")) return "image/jpeg";
  if (/^GIF8[79]a/.test(head)) return "image/gif";
  return /^RIFF[^]{4}WEBP/.test(head) ? "image/webp" : undefined;
}
