/** Size of the text in a request body. */

/** Sizes of the parts of a body. */
interface TextSize {
  /** Bytes of text, in UTF-8: all strings, and the names in what describes tools. */
  readonly textBytes: number;
  /** Images and files inside the body. Their bytes are not text. */
  readonly files: number;
}

/**
 * Measures a request body of any style.
 *
 * @param body one JSON object that nests no deeper than the limit
 */
export function textSize(body: Buffer): TextSize {
  const meter = new TextMeter();
  meter.value(JSON.parse(body.toString("utf8")));
  return meter;
}

class TextMeter implements TextSize {
  textBytes = 0;
  files = 0;

  value(value: unknown): void {
    if (typeof value === "string") this.#text(value);
    else if (Array.isArray(value)) for (const each of value) this.value(each);
    else if (typeof value === "object" && value !== null) this.#object(value);
  }

  #object(object: object): void {
    for (const [name, value] of Object.entries(object)) {
      if (name === "tools") this.textBytes += Buffer.byteLength(JSON.stringify(value));
      else if (typeof value === "string" && isBase64(name, object)) this.files++;
      else this.value(value);
    }
  }

  #text(text: string): void {
    if (text.startsWith("data:")) this.files++;
    else this.textBytes += Buffer.byteLength(text);
  }
}

/** `{type: "base64", media_type, data}` in messages, `{data, format}` for sound in responses. */
function isBase64(name: string, object: object): boolean {
  if (name !== "data") return false;
  return ("type" in object && object.type === "base64") || "format" in object;
}
