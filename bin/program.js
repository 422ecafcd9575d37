// Loads the program: its sources in a checkout; in a package, what `npm pack` compiled from them,
// since Node.js takes no types out of files below node_modules.
import { existsSync } from "node:fs";

const isCheckout = existsSync(new URL("../src", import.meta.url));

/** Imports a module of `src/`. @param name without its ending, such as `app/worker` */
export function load(name) {
  return import(isCheckout ? `../src/${name}.ts` : `../dist/src/${name}.js`);
}
