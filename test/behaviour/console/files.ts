/** Files that a page is given, in each of the ways that people have. */
import type { Locator, Page } from "playwright-core";

/** A file. */
export interface GivenFile {
  readonly name: string;
  readonly bytes: Buffer;
}

/** Picks files in the browser's dialog. */
export async function pick(page: Page, files: readonly GivenFile[]): Promise<void> {
  await page
    .locator("input[type=file]")
    .setInputFiles(
      files.map(({ name, bytes }) => ({ name, mimeType: "image/png", buffer: bytes })),
    );
}

/** Pastes or drops a file into a field. */
export async function give(
  field: Locator,
  kind: "paste" | "drop",
  { name, bytes }: GivenFile,
): Promise<void> {
  await field.focus();
  const [type, member] =
    kind === "paste" ? ["ClipboardEvent", "clipboardData"] : ["DragEvent", "dataTransfer"];
  await field.page().evaluate(`{
    const bytes = Uint8Array.from(atob("${bytes.toString("base64")}"), (each) => each.charCodeAt(0));
    const ${member} = new DataTransfer();
    ${member}.items.add(new File([bytes], "${name}"));
    const event = new ${type}("${kind}", { ${member}, bubbles: true, cancelable: true });
    document.activeElement.dispatchEvent(event);
  }`);
}
