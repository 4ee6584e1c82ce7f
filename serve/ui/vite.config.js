// Builds the page into built/: relative addresses only, so that it works under any path, and names with content hashes.

import { defineConfig } from "vite";

import { sourceHash } from "./sources.js";

const recordSources = {
  name: "record-sources",
  generateBundle() {
    this.emitFile({ type: "asset", fileName: "sources.json", source: `{"sha256": "${sourceHash()}"}\n` });
  },
};

export default defineConfig({
  root: import.meta.dirname,
  base: "./",
  publicDir: false,
  plugins: [recordSources],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "built",
    emptyOutDir: true,
    assetsDir: "ui",
    assetsInlineLimit: 0,
    modulePreload: false,
    target: "es2022",
    reportCompressedSize: false,
    rolldownOptions: {
      output: { entryFileNames: "ui/page-[hash].js", assetFileNames: "ui/[name]-[hash][extname]" },
    },
  },
});
