// Bundles the console into ../assets. The same sources and package-lock.json result in the
// same bytes, which a test compares.
import { build } from "esbuild";
import { copyFile, mkdir, rm } from "node:fs/promises";

const out = process.argv[2] ?? "../assets";
await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
await build({
  entryPoints: { console: "src/main.tsx" },
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "inline",
  outdir: out,
});
await copyFile("src/index.html", `${out}/index.html`);
await copyFile("src/icon.svg", `${out}/icon.svg`);
