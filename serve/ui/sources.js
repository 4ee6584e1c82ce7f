// The hash of the sources, which is written beside what is built from them, so that a stale build is noticed without Node.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";

const ROOT = import.meta.dirname;
/** What the builds depend on. `tests/unit/serve/ui/test_built.py` lists the same files. */
const SOURCES = [
  "index.html",
  "package.json",
  "package-lock.json",
  "tsconfig.json",
  "vite.config.js",
  "build_report.js",
  "sources.js",
  "src",
];

function filesOf(path) {
  const children = readdirSync(path, { withFileTypes: true });
  return children.flatMap((child) => (child.isDirectory() ? filesOf(join(path, child.name)) : [join(path, child.name)]));
}

export function sourceHash() {
  const files = SOURCES.flatMap((name) => (name === "src" ? filesOf(join(ROOT, name)) : [join(ROOT, name)]));
  const lines = files.map((file) => {
    const digest = createHash("sha256").update(readFileSync(file)).digest("hex");
    return `${relative(ROOT, file).replaceAll("\\", "/")} ${digest}\n`;
  });
  return createHash("sha256").update(lines.sort().join("")).digest("hex");
}
