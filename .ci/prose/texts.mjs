// usage: texts.mjs FOLDER FILE...: writes what people read of contracts, English locales and Go files to text files in a folder, each line
// at its place in the file.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [folder, ...files] = process.argv.slice(2);
const lines = {
  // Comments, on lines of their own or behind code.
  go: (line) => /^\s*\/\/ (?!nolint)(.*)/.exec(line)?.[1] ?? /[^:"]\/\/ (?!nolint)([^"`]*)$/.exec(line)?.[1] ?? "",
  yaml: (line) => /(?:description|summary|title): (.*)|^\s+([A-Z].*)/.exec(line)?.slice(1).find(Boolean) ?? "",
  json: (line) => /": "(.*)"/.exec(line)?.[1] ?? "",
};
mkdirSync(folder, { recursive: true });
for (const file of files) {
  const kind = file.split(".").pop();
  if (kind === "json" && !file.endsWith("/en.json")) continue;
  const text = readFileSync(file, "utf8").split("\n").map(lines[kind]);
  // A text ends with its line: a sentence over several lines is read line by line.
  writeFileSync(join(folder, file.replaceAll("/", "~") + ".txt"), text.join("\n"));
}
