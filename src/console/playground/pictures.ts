/** Pictures that go with a message: what vendors take, read into `data:` addresses. */

/** A picture, ready to be sent. */
export interface Picture {
  readonly name: string;
  /** `data:<type>;base64,…` */
  readonly url: string;
  /** Of the file. */
  readonly bytes: number;
}

/** The longest file, in bytes: some vendors refuse more than 5 MB in base64, a third more than the file. */
export const pictureBytesMax = Math.floor(3.5 * 1024 * 1024);

/** The most pictures of a message. */
export const picturesMax = 10;

/** The longest files of a conversation together, in bytes: in base64 and with a text they stay below the 20 MiB that
 * the gateway takes. */
export const allBytesMax = 14 * 1024 * 1024;

/** What the picker offers. */
export const pictureTypes = "image/png,image/jpeg,image/webp,image/gif";

/** Why a file cannot go with a message. */
export type PictureFault = "type" | "size" | "count" | "all" | "read";

/** Files as pictures, and what is wrong with the others. */
export interface Taken {
  readonly pictures: readonly Picture[];
  readonly faults: readonly { readonly name: string; readonly fault: PictureFault }[];
}

/**
 * Reads files.
 *
 * @param before how many pictures the message has, and how many bytes the conversation's have
 */
export async function takePictures(
  files: readonly File[],
  before: { readonly count: number; readonly bytes: number },
): Promise<Taken> {
  let { count, bytes } = before;
  const pictures: Picture[] = [];
  const faults: { name: string; fault: PictureFault }[] = [];
  for (const file of files) {
    const { name, size } = file;
    const read = size > pictureBytesMax ? "size" : await readPicture(file);
    const fault =
      typeof read === "string"
        ? read
        : count >= picturesMax
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

async function readPicture(file: File): Promise<Picture | "type" | "read"> {
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
