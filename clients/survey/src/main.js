// The pages of respondents: a survey (`/s/COLLECTION`) and a device's own budget (`/me`).

import "./languages.js";
import { DeviceBudget } from "../../js/src/budget.js";
import { Outbox } from "../../js/src/outbox.js";
import { Delivery } from "./delivery.js";
import { el, show } from "./elements.js";
import { Links, taken } from "./links.js";
import { Mine } from "./mine.js";
import { Survey } from "./survey.js";
import { say } from "./texts.js";

/** @typedef {{ budget: DeviceBudget, outbox: Outbox, links: Links, delivery: Delivery }} Device */

const place = /^\/s\/([^/]+)$/.exec(location.pathname);
const collection = place && decodeURIComponent(place[1]);
// First: the link must not stay in the address bar, where others could see it.
const link = collection ? taken(collection) : undefined;

/** @type {Survey | Mine | undefined} */
let page;

async function start() {
  const { lifetime = "", day } = document.body.dataset;
  const budget = await DeviceBudget.open({ lifetime, day: day || undefined });
  const outbox = new Outbox(budget);
  const delivery = new Delivery(outbox, (entry, why) => page?.changed(entry, why));
  const device = { budget, outbox, links: new Links(), delivery };
  page = collection ? new Survey(device, collection, link) : new Mine(device);
  await page.start();
  await delivery.now();
}

try {
  await start();
} catch (error) {
  console.error(error);
  show([el("h1", { "data-problem": "storage" }, say("problem.storage.title")), el("p", { class: "lead" }, say("problem.storage.text"))]);
}
