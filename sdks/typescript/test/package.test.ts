// Checks the package as others install it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { VERSION } from "@holdfast/sdk";
import { build } from "esbuild";

const root = fileURLToPath(new URL("../..", import.meta.url));
const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");

/** Returns the code of a program with the parts of the package that it uses. */
async function bundle(code: string, options: { minify: boolean }): Promise<string> {
  const result = await build({
    stdin: { contents: code, resolveDir: root },
    bundle: true,
    format: "esm",
    platform: "neutral",
    write: false,
    ...options,
  });
  return result.outputFiles[0]?.text ?? "";
}

test("the package has the version of all SDKs and no dependencies", () => {
  const manifest = JSON.parse(read("package.json"));
  assert.equal(manifest.version, read("../VERSION").trim());
  assert.equal(VERSION, manifest.version);
  assert.deepEqual([manifest.dependencies, manifest.peerDependencies, manifest.optionalDependencies], [undefined, undefined, undefined]);
});

test("one resource has at most 8 KB with gzip", async (t) => {
  const code =
    'import { BookingsResource, Client } from "@holdfast/sdk"; console.log(await new BookingsResource(new Client()).create({ event_date: "2030-06-01" }));';
  const size = gzipSync(await bundle(code, { minify: true })).length;
  const all = gzipSync(await bundle('export * from "@holdfast/sdk";', { minify: true })).length;
  t.diagnostic(`one resource: ${size} bytes, everything: ${all} bytes`);
  assert.ok(size <= 8192, `${size} bytes`);
});

test("a bundle has only what the program uses", async () => {
  const one = await bundle('import { BookingsResource, Client } from "@holdfast/sdk"; new BookingsResource(new Client()).get("bk_1");', {
    minify: false,
  });
  assert.ok(one.includes("BookingsResource = class"));
  for (const unused of ["InvoicesResource", "EventStream", "OAuthTokenSource", "crypto.subtle"]) assert.ok(!one.includes(unused), unused);
  const receiver = await bundle('import { webhooks } from "@holdfast/sdk"; await webhooks.unwrap("", {}, "");', { minify: false });
  assert.ok(receiver.includes("crypto.subtle"));
  for (const unused of ["Client = class", "Resource = class", "APIPromise = class"]) assert.ok(!receiver.includes(unused), unused);
});
