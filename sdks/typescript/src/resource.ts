import type { Client } from "./client.js";

/** Base class of the resources. */
export class Resource {
  protected readonly client: Client;

  constructor(client: Client) {
    this.client = client;
  }
}
