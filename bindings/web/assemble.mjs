// Puts the what-if page together: node assemble.mjs FOLDER_OF_THE_ENGINE OUTPUT. Fails where it is larger than a page should be.
import {copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync} from "node:fs";
import {basename, join} from "node:path";
import {gzipSync} from "node:zlib";

const LARGEST = 3_000_000;  // bytes, gzipped, as a server sends them

const [engine, output] = process.argv.slice(2);
const here = new URL(".", import.meta.url).pathname;
const shared = ["dom", "text", "bars", "charts", "schedule", "plan", "others"].map((name) => `report/${name}.js`);
const files = [
  ...readdirSync(join(here, "whatif")).map((name) => join(here, "whatif", name)),
  ...["report/page.css", ...shared, "vendor/uPlot.iife.min.js", "vendor/uPlot.min.css", "vendor/uPlot.LICENSE"].map((name) => join(here, name)),
  ...["headroom.mjs", "headroom.wasm"].map((name) => join(engine, name)),
  ...["LICENSE", "NOTICE"].map((name) => join(here, "../..", name)),
];

rmSync(output, {recursive: true, force: true});
mkdirSync(output, {recursive: true});
let size = 0;
for (const file of files) {
  copyFileSync(file, join(output, basename(file)));
  size += gzipSync(readFileSync(file), {level: 9}).length;
}
console.log(`${output}: ${files.length} files, ${(size / 1e6).toFixed(2)} MB gzipped`);
if (size > LARGEST) {
  console.error(`larger than ${LARGEST / 1e6} MB`);
  process.exitCode = 1;
}
