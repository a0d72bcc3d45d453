// usage: texts.mjs FOLDER FILE...: extracts the texts of contracts, English locales, Go files, and TypeScript files to text files in a folder. Each line
// keeps its line number.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [folder, ...files] = process.argv.slice(2);
// Messages to the log, of errors and of tests, and the help of metrics and commands.
const message = /(?:\b(?:Info|Warn|Error|Debug|Errorf|New|Fatalf?|Skipf?|Logf?|ErrorContext|WarnContext|InfoContext|DebugContext|Report)\([^"`]*|\b(?:Help|Short): )"((?:[^"\\]|\\.)*)"/;
const lines = {
  // Comments, on their own lines or after code, and messages.
  go: (line) => /^\s*\/\/ (?!nolint)(.*)/.exec(line)?.[1] ?? message.exec(line)?.[1] ?? /[^:"]\/\/ (?!nolint)([^"`]*)$/.exec(line)?.[1] ?? "",
  ts: (line) => /^\s*(?:\/\*\*|\*|\/\/) (?!biome-ignore|@)(.*?)(?: \*\/)?$/.exec(line)?.[1] ?? "",
  yaml: (line) => /(?:description|summary|title): (.*)|^\s+([A-Z].*)/.exec(line)?.slice(1).find(Boolean) ?? "",
  json: (line) => /": "(.*)"/.exec(line)?.[1] ?? "",
};
mkdirSync(folder, { recursive: true });
for (const file of files) {
  const kind = file.split(".").pop();
  if (kind === "json" && !file.endsWith("/en.json")) continue;
  const text = readFileSync(file, "utf8").split("\n").map(lines[kind]);
  // Each line is a separate text: a sentence over several lines is checked line by line.
  writeFileSync(join(folder, file.replaceAll("/", "~") + ".txt"), text.join("\n"));
}
