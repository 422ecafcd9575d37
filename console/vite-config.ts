import { join } from "node:path";
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// oxlint-disable-next-line import/no-default-export -- vite reads the default export
export default defineConfig({
  root: join(import.meta.dirname, "src"),
  base: "/console/",
  publicDir: false,
  plugins: [react(), tailwindcss()],
  build: {
    target: "es2023",
    emptyOutDir: false,
    // No `data:` addresses: the pages' security policy forbids them for fonts and scripts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 1_000,
    // The code of the first page is one file, and shared code a few: of 99 files, a third had less
    // than 2 KB, and a page requested sixty.
    rolldownOptions: {
      output: {
        // Shared chunks would be named after all their users.
        chunkFileNames: ({ name }) => `assets/${name.split("~")[0] ?? name}-[hash].js`,
        codeSplitting: {
          groups: [
            { name: "first", tags: ["$initial"] },
            {
              name: "shared",
              minShareCount: 2,
              entriesAware: true,
              entriesAwareMergeThreshold: 20_000,
            },
          ],
        },
      },
    },
  },
});
