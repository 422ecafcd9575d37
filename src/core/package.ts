/** The package that this program is part of: a checkout, or what `npm pack` made of it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Whether the program was compiled for a package, into its `dist/`. A checkout runs the sources.
 */
export const isCompiled = import.meta.filename.endsWith(".js");

/** The folder of `package.json`. */
export const packageFolder = join(import.meta.dirname, isCompiled ? "../../.." : "../..");

/** The version of the program. */
export const { version } = JSON.parse(
  readFileSync(join(packageFolder, "package.json"), "utf8"),
) as { readonly version: string };

/** The program as a person types it: in the folder of a checkout, or installed. */
export const command = isCompiled ? "uas" : "./uas";
