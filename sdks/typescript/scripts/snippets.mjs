// usage: snippets.mjs: writes the TypeScript code of README.md to test/snippets/<heading>.ts.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";

rmSync("test/snippets", { recursive: true, force: true });
mkdirSync("test/snippets", { recursive: true });
const readme = readFileSync("README.md", "utf8");
for (const section of readme.split(/^## /m).slice(1)) {
  const heading = section.split("\n", 1)[0].toLowerCase().replaceAll(" ", "-");
  const [code, ...others] = [...section.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, block]) => block);
  if (others.length > 0) throw new Error(`${heading} has several snippets`);
  // A file without imports of its own is a script, and not a module.
  if (code) writeFileSync(`test/snippets/${heading}.ts`, `${code}export {};\n`);
}
