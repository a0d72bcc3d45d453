import { Holdfast } from "@holdfast/sdk";

const client = new Holdfast();
const unitId = process.env.UNIT_ID ?? "";

// snippet create
const feed = await client.calendarFeeds.create({ name: "Kayak", unit_id: unitId });
console.log(feed.name);
console.log(feed.url);
// end

// snippet delete
await client.calendarFeeds.delete(feed.id);
// end
