/** The browser that the tests of the console run in: a Chromium of this machine. */
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

/** The one without windows first: it takes two thirds of the CPU of the others. */
const names = [
  "chromium-headless-shell",
  "chromium",
  "chromium-browser",
  "google-chrome-stable",
  "google-chrome",
];

/** Set by `npm run test:browser`: a machine without a browser is a failure then. */
const isRequired = process.env["UAS_TEST_BROWSER"] === "required";

/**
 * The path of a Chromium: `CHROMIUM_PATH`, or the first on `PATH`; `undefined` if there is none.
 *
 * @throws Error if there is none and there has to be
 */
export function findBrowser(): string | undefined {
  const given = process.env["CHROMIUM_PATH"] ?? "";
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  const places = names.flatMap((name) => folders.map((folder) => join(folder, name)));
  const found = (given === "" ? places : [given]).find(canRun);
  if (found === undefined && isRequired) {
    throw new Error(
      "there is no Chromium: install one (Debian: apt-get install chromium) or set CHROMIUM_PATH",
    );
  }
  return found;
}

function canRun(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
