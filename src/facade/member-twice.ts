/** Finds names that stand twice in one object of a JSON text: a reader of it sees the last one only. */

/** An object or an array that is open. */
interface Level {
  readonly path: string;
  /** Of an object: those that were read. */
  readonly names?: Set<string>;
  /** Of an object: whether a name comes next. */
  isName: boolean;
  /** Where in it the next value stands. */
  at: string;
  /** Of an array: how many values stand before it. */
  index: number;
}

/**
 * The path of the first member that stands twice in its object, such as `imageParams.n` or `list[2].name`; `undefined`:
 * none does.
 *
 * @param text valid JSON
 */
export function memberTwice(text: string): string | undefined {
  const open: Level[] = [];
  for (let at = 0; at < text.length; at++) {
    const level = open.at(-1);
    const path = level?.at ?? "";
    const char = text[at];
    if (char === "{") open.push({ path, names: new Set(), isName: true, at: path, index: 0 });
    else if (char === "[") open.push({ path, isName: false, at: `${path}[0]`, index: 0 });
    else if (char === "}" || char === "]") open.pop();
    else if (char === "," && level !== undefined) goOn(level);
    else if (char === '"') {
      const end = stringEnd(text, at);
      if (level?.isName && isTwice(level, text.slice(at, end))) return level.at;
      at = end - 1;
    }
  }
  return undefined;
}

function goOn(level: Level): void {
  if (level.names !== undefined) level.isName = true;
  else level.at = `${level.path}[${++level.index}]`;
}

function isTwice(level: Level, quoted: string): boolean {
  const name = JSON.parse(quoted) as string;
  level.isName = false;
  level.at = level.path === "" ? name : `${level.path}.${name}`;
  const isThere = level.names?.has(name) === true;
  level.names?.add(name);
  return isThere;
}

/** Behind the closing quote of the string that begins at `start`. */
function stringEnd(text: string, start: number): number {
  for (let at = start; ; ) {
    at = text.indexOf('"', at + 1);
    let first = at;
    while (text[first - 1] === "\\") first--;
    // A quote behind an odd number of them is part of the string.
    if ((at - first) % 2 === 0) return at + 1;
  }
}
