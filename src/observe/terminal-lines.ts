/** Log lines for a person at a terminal. */

/** Words of pino's levels. */
const levelWords: Readonly<Record<number, string>> = {
  10: "trace",
  20: "debug",
  30: "info",
  40: "warn",
  50: "error",
  60: "fatal",
};

/** Members that a person rarely needs: `uas calls show REQUEST_ID` prints them. */
const leftOut = new Set(["level", "time", "msg", "callId", "accountId", "keyId", "pid"]);

/**
 * Rewrites lines of JSON as `21:03:18 warn  the clock is wrong offsetMs=7000`, with the local time.
 * Other lines stay as they are.
 *
 * @param text whole lines
 */
export function terminalLines(text: string): string {
  return text.replace(/^\{"level":.*\}$/gm, (line) => terminalLine(line));
}

function terminalLine(line: string): string {
  let fields: Readonly<Record<string, unknown>>;
  try {
    fields = JSON.parse(line) as Readonly<Record<string, unknown>>;
  } catch {
    return line;
  }
  const { level, time, msg } = fields;
  const clock = new Date(String(time)).toTimeString().slice(0, 8);
  const word = (levelWords[Number(level)] ?? String(level)).padEnd(5);
  const more = Object.entries(fields)
    .filter(([name, value]) => !leftOut.has(name) && value !== undefined)
    .map(([name, value]) => `${name}=${valueText(value)}`);
  return [clock, word, msg, ...more].join(" ");
}

/** A value as short as it can be read: of an error its message, and quotes only around spaces. */
function valueText(value: unknown): string {
  if (isError(value)) return JSON.stringify(value.message);
  if (typeof value === "string" && /^[^\s"=]+$/.test(value)) return value;
  return JSON.stringify(value);
}

function isError(value: unknown): value is { readonly message: string } {
  return typeof value === "object" && value !== null && "message" in value && "stack" in value;
}
