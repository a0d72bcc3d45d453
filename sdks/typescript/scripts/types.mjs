// usage: types.mjs VIEW: writes src/types.gen.ts from the document for generators of clients, with @hey-api/openapi-ts. Enumerations that
// can grow are plain strings in the document. Here, they also list their known values, so that editors suggest them.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@hey-api/openapi-ts";

const [view] = process.argv.slice(2);
const output = mkdtempSync(join(tmpdir(), "holdfast-"));
try {
  await createClient({ input: view, output, plugins: ["@hey-api/typescript"], logs: { level: "silent", file: false } });
  let types = readFileSync(join(output, "types.gen.ts"), "utf8");
  const { schemas } = JSON.parse(readFileSync(view, "utf8")).components;
  for (const [name, { "x-known-values": known }] of Object.entries(schemas)) {
    if (!known) continue;
    const open = `export type ${name} = string;`;
    if (!types.includes(open)) throw new Error(`${name} is not a string`);
    types = types.replace(open, `export type ${name} = ${known.map((value) => JSON.stringify(value)).join(" | ")} | (string & {});`);
  }
  // The package has its own options.
  types = types.replace(/^export type ClientOptions = .*?^};\n\n/ms, "");
  writeFileSync("src/types.gen.ts", types);
} finally {
  rmSync(output, { recursive: true });
}
