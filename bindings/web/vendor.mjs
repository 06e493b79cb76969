// Copies what pages take from npm into vendor/; with --check, only says whether the files there are those of the package.
import {copyFileSync, readFileSync} from "node:fs";

const FILES = {"uPlot.iife.min.js": "dist/uPlot.iife.min.js", "uPlot.min.css": "dist/uPlot.min.css", "uPlot.LICENSE": "LICENSE"};
const from = (name) => new URL(`node_modules/uplot/${FILES[name]}`, import.meta.url);
const to = (name) => new URL(`vendor/${name}`, import.meta.url);

for (const name of Object.keys(FILES)) {
  if (!process.argv.includes("--check")) {
    copyFileSync(from(name), to(name));
  } else if (!readFileSync(from(name)).equals(readFileSync(to(name)))) {
    console.error(`vendor/${name} is not that of the package: npm run vendor`);
    process.exitCode = 1;
  }
}
