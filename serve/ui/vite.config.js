// Builds the page into built/: relative addresses only, so that it works under any path, and names with content hashes.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";

import { defineConfig } from "vite";

const ROOT = import.meta.dirname;
/** What the build depends on. `tests/unit/serve/ui/test_built.py` lists the same files. */
const SOURCES = ["index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.js", "src"];

function filesOf(path) {
  const children = readdirSync(path, { withFileTypes: true });
  return children.flatMap((child) => (child.isDirectory() ? filesOf(join(path, child.name)) : [join(path, child.name)]));
}

function sourceHash() {
  const files = SOURCES.flatMap((name) => (name === "src" ? filesOf(join(ROOT, name)) : [join(ROOT, name)]));
  const lines = files.map((file) => {
    const digest = createHash("sha256").update(readFileSync(file)).digest("hex");
    return `${relative(ROOT, file).replaceAll("\\", "/")} ${digest}\n`;
  });
  return createHash("sha256").update(lines.sort().join("")).digest("hex");
}

/** Writes the hash of the sources beside what was built from them, so that a stale build is noticed without Node. */
const recordSources = {
  name: "record-sources",
  generateBundle() {
    this.emitFile({ type: "asset", fileName: "sources.json", source: `{"sha256": "${sourceHash()}"}\n` });
  },
};

export default defineConfig({
  root: ROOT,
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
