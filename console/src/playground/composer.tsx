/**
 * The user's input: a message with images, which are read into `data:` addresses, or the results of
 * tools.
 */
import { clsx } from "clsx";
import { ImagePlus, SendHorizontal, Square, X } from "lucide-react";
import { type ClipboardEvent, type DragEvent, type KeyboardEvent, useRef, useState } from "react";
import { useText } from "../common/language.tsx";
import { Button, buttonClass } from "../ui/button.tsx";
import { AreaField } from "../ui/field.tsx";
import { Form } from "../ui/form.tsx";
import type { Message, ToolCall } from "./conversation.ts";

/** Writes a message: Enter sends it, images are picked, pasted or dropped. */
export function Composer({
  draft,
  hasFocus,
  isRunning,
  onSend,
  onStop,
}: {
  draft: Draft;
  /** Whether the field has the focus at first, because it replaces a field that had it. */
  hasFocus: boolean;
  isRunning: boolean;
  onSend: () => void;
  onStop: () => void;
}) {
  const { playground: text } = useText();
  const { isOver, onPaste, ...drop } = useGivenFiles(draft);
  const send = (): void => {
    if (!draft.isEmpty && !isRunning) onSend();
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    send();
  };
  return (
    // oxlint-disable-next-line jsx-a11y/no-static-element-interactions -- keys: button, Ctrl+V
    <div
      {...drop}
      className={clsx("flex flex-col gap-2 rounded-b-xl p-4", isOver && "bg-accent-soft")}
    >
      <AttachedImages draft={draft} />
      <AreaField
        label={text.message}
        isLabelHidden
        placeholder={isOver ? text.drop : text.message}
        rows={2}
        autoFocus={hasFocus}
        value={draft.text}
        onKeyDown={onKey}
        onPaste={onPaste}
        onChange={(event) => draft.write(event.target.value)}
      />
      <div className="flex flex-wrap items-center justify-between gap-2">
        <Picker draft={draft} />
        <p className="order-last w-full text-xs text-muted sm:order-none sm:w-auto sm:flex-1">
          {text.attachHint}
        </p>
        {isRunning ? (
          <Button size="medium" onClick={onStop}>
            <Square aria-hidden="true" />
            {text.stop}
          </Button>
        ) : (
          <Button tone="primary" size="medium" disabled={draft.isEmpty} onClick={send}>
            <SendHorizontal aria-hidden="true" />
            {text.send}
          </Button>
        )}
      </div>
    </div>
  );
}

/** Files that are pasted into the message or dropped on it. */
function useGivenFiles(draft: Draft) {
  const [isOver, setOver] = useState(false);
  const drag = (over: boolean) => (event: DragEvent) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    setOver(over);
  };
  return {
    isOver,
    onDragOver: drag(true),
    onDragLeave: drag(false),
    onDrop: (event: DragEvent): void => {
      drag(false)(event);
      void draft.take([...event.dataTransfer.files]);
    },
    onPaste: (event: ClipboardEvent): void => {
      if (event.clipboardData.files.length === 0) return;
      // Cells copied from a spreadsheet are a text and an image of it: the text is used.
      if (event.clipboardData.getData("text/plain") !== "") return;
      event.preventDefault();
      void draft.take([...event.clipboardData.files]);
    },
  };
}

function Picker({ draft }: { draft: Draft }) {
  const { playground: text } = useText();
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        accept={imageTypes}
        aria-label={text.attach}
        onChange={({ target }) => {
          void draft.take([...(target.files ?? [])]);
          // The same file can be picked again.
          target.value = "";
        }}
      />
      <Button tone="quiet" onClick={() => input.current?.click()}>
        <ImagePlus aria-hidden="true" />
        {text.attach}
      </Button>
    </>
  );
}

/** The images of the message, and the reasons why others were not added. */
function AttachedImages({ draft }: { draft: Draft }) {
  const { playground: text } = useText();
  const { images, faults } = draft;
  return (
    <>
      {images.length > 0 && (
        <ul aria-label={text.images} className="flex flex-wrap gap-3">
          {images.map((image, index) => (
            // oxlint-disable-next-line react/no-array-index-key -- one file may be there twice
            <li key={index}>
              <Thumbnail image={image} onRemove={() => draft.remove(index)} />
            </li>
          ))}
        </ul>
      )}
      {faults.length > 0 && (
        <div role="alert" className="text-xs text-bad">
          {faults.map(({ name, fault }, index) => (
            // oxlint-disable-next-line react/no-array-index-key -- one file may be there twice
            <p key={index} className="break-words">
              {text.imageFaults[fault](name)}
            </p>
          ))}
        </div>
      )}
    </>
  );
}

function Thumbnail({
  image: { name, url, bytes },
  onRemove,
}: {
  image: AttachedImage;
  onRemove: () => void;
}) {
  const { playground: text } = useText();
  return (
    <figure className="relative w-20">
      <img
        src={url}
        alt={name}
        className="size-20 rounded-lg border border-line bg-sunken object-cover"
      />
      <figcaption className="mt-0.5 truncate text-xs text-muted">
        {(bytes / 1024).toFixed(bytes < 10_240 ? 1 : 0)} KB
      </figcaption>
      <button
        type="button"
        aria-label={text.removeImage(name)}
        onClick={onRemove}
        className={clsx(buttonClass("secondary", "icon"), "absolute -top-2 -right-2 size-7!")}
      >
        <X aria-hidden="true" />
      </button>
    </figure>
  );
}

/** The messages for the results of tools. */
export function resultMessages(
  calls: readonly ToolCall[],
  results: readonly string[],
): readonly Message[] {
  return calls.map(({ id }, index) => ({
    role: "tool",
    tool_call_id: id,
    content: results[index] ?? "",
  }));
}

/** The form for the results of tool calls. `onWrite` is called with each change. */
export function ToolResults({
  calls,
  results,
  onWrite,
  onSend,
}: {
  calls: readonly ToolCall[];
  results: readonly string[];
  onWrite: (results: readonly string[]) => void;
  onSend: () => void;
}) {
  const { playground: text } = useText();
  const [isTried, setTried] = useState(false);
  const isMissing = (index: number): boolean => (results[index] ?? "").trim() === "";
  const submit = (): void => {
    setTried(true);
    if (!calls.some((_, index) => isMissing(index))) onSend();
  };
  return (
    <Form onSubmit={submit} className="flex flex-col gap-3 border-t border-line p-4">
      <p className="text-[0.8125rem] text-muted">{text.resultsHint}</p>
      {calls.map(({ function: { name } }, index) => (
        <AreaField
          // oxlint-disable-next-line react/no-array-index-key -- ids repeat, the order does not
          key={index}
          label={
            <span className="wrap-anywhere">
              {text.resultOf(calls.length > 1 ? `${name} (${index + 1})` : name)}
            </span>
          }
          error={isTried && isMissing(index) ? text.resultMissing : undefined}
          rows={3}
          spellCheck={false}
          autoFocus={index === 0}
          className="font-mono text-xs"
          value={results[index] ?? ""}
          onChange={({ target }) =>
            onWrite(calls.map((_, at) => (at === index ? target.value : (results[at] ?? ""))))
          }
        />
      ))}
      <Button type="submit" tone="primary" size="medium" className="self-end">
        <SendHorizontal aria-hidden="true" />
        {text.sendResults(calls.length)}
      </Button>
    </Form>
  );
}

/** The message that is being written. */
interface Draft {
  readonly text: string;
  readonly images: readonly AttachedImage[];
  /** Why some of the last files were not added. */
  readonly faults: ReadImages["faults"];
  readonly isEmpty: boolean;
  write(text: string): void;
  /** Adds the allowed files; `faults` contains the others. */
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
interface AttachedImage {
  readonly name: string;
  /** `data:<type>;base64,…` */
  readonly url: string;
  /** The size of the file. */
  readonly bytes: number;
}

/**
 * Maximum size of a file: some vendors refuse more than 5 MB in base64, which is a third more than
 * the file.
 */
const imageBytesMax = Math.floor(3.5 * 1024 * 1024);

/** The most images in a message. */
const imagesMax = 10;

/**
 * Maximum total size of all files of a conversation: in base64 and with text they stay below the 20
 * MiB that the gateway accepts.
 */
const allBytesMax = 14 * 1024 * 1024;

/** The types that the file dialog offers. */
const imageTypes = "image/png,image/jpeg,image/webp,image/gif";

/** Why a file is not added to a message. */
type ImageFault = "type" | "size" | "count" | "all" | "read";

/** The images among some files, and the reasons why the others were refused. */
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

/**
 * The type of a file by its first bytes: its name may be wrong, and vendors check the bytes too.
 */
function typeOf(bytes: Uint8Array): string | undefined {
  const head = String.fromCodePoint(...bytes);
  if (head.startsWith("\x89PNG\r\n\x1a\n")) return "image/png";
  if (head.startsWith("\xff\xd8\xff")) return "image/jpeg";
  if (/^GIF8[79]a/.test(head)) return "image/gif";
  return /^RIFF[^]{4}WEBP/.test(head) ? "image/webp" : undefined;
}
