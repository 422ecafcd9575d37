/**
 * `npm run console`: builds the pages of the console now, for images and packages. `npm start` does
 * it by itself if they are missing.
 */
import { buildPages } from "../src/app/built-pages.ts";

process.stdout.write(`${await buildPages()}\n`);
