// Lint rules for the JavaScript that runs in pages.

import { readdirSync, readFileSync } from "node:fs";

import js from "@eslint/js";
import globals from "globals";

const IN_PAGE = "pipeline/browser/page/js";

/** Names that the parts of the in-page script declare: all parts are concatenated into one scope. */
const partNames = readdirSync(IN_PAGE)
  .filter((file) => file.endsWith(".js"))
  .flatMap((file) => [...readFileSync(`${IN_PAGE}/${file}`, "utf8").matchAll(/^(?:const|let|class|function) (\[[^\]]+\]|\w+)/gm)])
  .flatMap(([, names]) => names.match(/\w+/g));

export default [
  { ignores: ["**/*.d.ts", "demo-output/**", "site/**"] },
  js.configs.recommended,
  {
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      eqeqeq: ["error", "always"],
      "no-empty": ["error", { allowEmptyCatch: true }],
      "no-shadow": "off", // parts share one scope, and short names are fine inside a function
      "no-var": "error",
      "prefer-const": "error",
    },
  },
  {
    files: [`${IN_PAGE}/*.js`],
    languageOptions: {
      sourceType: "script",
      globals: {
        ...globals.browser,
        KEY: "readonly",
        ...Object.fromEntries(partNames.map((name) => [name, "writable"])),
      },
    },
    rules: {
      strict: ["error", "never"], // the wrapper in script.py is strict
      "no-redeclare": "off", // each declaration is also listed as a name of the parts
      "prefer-const": "off", // a variable may be assigned in another part
      "no-unused-vars": ["error", { vars: "local", args: "after-used", argsIgnorePattern: "^_" }],
    },
  },
  {
    files: ["pipeline/browser/guard/js/*.js", "pipeline/browser/storage/js/*.js"],
    languageOptions: { sourceType: "script", globals: { ...globals.browser, ...globals.worker } },
    rules: { "no-unused-expressions": "off" }, // each file is one expression, which Python evaluates
  },
  {
    files: ["pipeline/browser/page/js_fingerprint/*.js"],
    languageOptions: { sourceType: "script", globals: globals.browser },
  },
  { files: ["*.mjs"], languageOptions: { globals: globals.node } },
];
