// Builds src/report/ into one HTML file without its content: script and styles are inline, and the policy names them by
// their hashes. `waygraph/core/report_file.py` puts the content of a report into it.
//
//     node build_report.js [FILE]

import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { build } from "vite";

import { sourceHash } from "./sources.js";

const ROOT = import.meta.dirname;
const target = process.argv[2] ?? join(ROOT, "..", "..", "waygraph", "core", "report_template.html");

const result = await build({
  configFile: false,
  root: ROOT,
  publicDir: false,
  logLevel: "warn",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    write: false,
    target: "es2022",
    cssCodeSplit: false,
    modulePreload: false,
    rolldownOptions: { input: join(ROOT, "src", "report", "main.tsx"), output: { format: "iife" } },
  },
});
const [{ output }] = [result].flat();
const script = inert(output.find((each) => each.type === "chunk").code.trim(), "script");
const style = inert(output.find((each) => each.fileName.endsWith(".css")).source.toString().trim(), "style");

/** Text that does not end the element that it stands in. */
function inert(text, element) {
  return text.replaceAll(`</${element}`, `<\\/${element}`).replaceAll("<!--", "<\\!--");
}

function hash(text) {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}

const policy = [
  "default-src 'none'",
  `script-src ${hash(script)}`,
  `style-src ${hash(style)}`,
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

writeFileSync(
  target,
  `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta http-equiv="Content-Security-Policy" content="${policy}" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <meta name="waygraph-sources" content="${sourceHash()}" />
    <title>waygraph report</title>
    <style>${style}</style>
  </head>
  <body>
    <div id="app"></div>
    <noscript>This report is drawn by a script in this file. It loads nothing: allow it, or open the file in a browser.</noscript>
    <script type="application/json" id="content"><!--content--></script>
    <script>${script}</script>
  </body>
</html>
`,
);
