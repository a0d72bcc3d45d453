// snippet me
import { Holdfast } from "@holdfast/sdk";

const client = new Holdfast({
  baseURL: process.env.HOLDFAST_BASE_URL ?? "",
  apiKey: process.env.HOLDFAST_API_KEY ?? "",
});
const me = await client.me.get();
console.log(me.type);
console.log(me.mode);
// end
