/** A message while it is written: text, and images read into `data:` addresses. */
import { useState } from "react";

/** The draft. */
export interface Draft {
  readonly text: string;
  readonly pictures: readonly AttachedImage[];
  /** Why files that were given last are not among the pictures. */
  readonly faults: ReadImages["faults"];
  readonly isEmpty: boolean;
  write(text: string): void;
  /** Adds files, as far as they can go with the message. */
  take(files: readonly File[]): Promise<void>;
  remove(index: number): void;
  clear(): void;
}

/** @param saidBytes how long the pictures are that were sent before */
export function useDraft(saidBytes: number): Draft {
  const [text, write] = useState("");
  const [pictures, setPictures] = useState<readonly AttachedImage[]>([]);
  const [faults, setFaults] = useState<ReadImages["faults"]>([]);
  return {
    text,
    pictures,
    faults,
    isEmpty: text.trim() === "" && pictures.length === 0,
    write,
    async take(files) {
      const bytes = pictures.reduce((sum, each) => sum + each.bytes, saidBytes);
      const taken = await readImages(files, { count: pictures.length, bytes });
      setPictures((before) => [...before, ...taken.pictures]);
      setFaults(taken.faults);
    },
    remove(index) {
      setPictures((before) => before.toSpliced(index, 1));
      setFaults([]);
    },
    clear() {
      write("");
      setPictures([]);
      setFaults([]);
    },
  };
}

/** A picture, ready to be sent. */
export interface AttachedImage {
  readonly name: string;
  /** `data:<type>;base64,…` */
  readonly url: string;
  /** Of the file. */
  readonly bytes: number;
}

/** The longest file, in bytes: some vendors refuse more than 5 MB in base64, a third more than the file. */
const imageBytesMax = Math.floor(3.5 * 1024 * 1024);

/** The most pictures of a message. */
const imagesMax = 10;

/** The longest files of a conversation together, in bytes: in base64 and with a text they stay below the 20 MiB that
 * the gateway takes. */
const allBytesMax = 14 * 1024 * 1024;

/** What the picker offers. */
export const imageTypes = "image/png,image/jpeg,image/webp,image/gif";

/** Why a file cannot go with a message. */
type ImageFault = "type" | "size" | "count" | "all" | "read";

/** Files as pictures, and what is wrong with the others. */
interface ReadImages {
  readonly pictures: readonly AttachedImage[];
  readonly faults: readonly { readonly name: string; readonly fault: ImageFault }[];
}

/**
 * Reads files.
 *
 * @param before how many pictures the message has, and how many bytes the conversation's have
 */
async function readImages(
  files: readonly File[],
  before: { readonly count: number; readonly bytes: number },
): Promise<ReadImages> {
  let { count, bytes } = before;
  const pictures: AttachedImage[] = [];
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
    pictures.push(read);
  }
  return { pictures, faults };
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

/** What a file is by its first bytes: its name may say anything, and vendors look too. */
function typeOf(bytes: Uint8Array): string | undefined {
  const head = String.fromCodePoint(...bytes);
  if (head.startsWith("\x89PNG\r\n\x1a\n")) return "image/png";
  if (head.startsWith("\xff\xd8\xff")) return "image/jpeg";
  if (/^GIF8[79]a/.test(head)) return "image/gif";
  return /^RIFF[^]{4}WEBP/.test(head) ? "image/webp" : undefined;
}
