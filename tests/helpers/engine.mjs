// Node that stays for many tests: lines of JSON in, a line of JSON out for each. {"module": source} is run, and
// what it logs is said; {"lines": […]} are answered as `src/adapter.mjs` answers them, by a client of their own.

import { createInterface } from "node:readline";

const { Client } = await import(process.argv[2]);
const { fromHex, toHex } = await import(new URL("bytes.js", process.argv[2]).href);

const logged = [];
console.log = (text) => logged.push(text);

function answered(lines) {
  const said = [];
  let client;
  for (const asked of lines) {
    try {
      if (asked.collection) client = new Client(asked.collection);
      else if (!client) throw new TypeError("the first line names the collection");
      else {
        const secret = asked.secret ? fromHex(asked.secret) : undefined;
        said.push({ report: toHex(client.randomize(asked.answer, { secret })) });
      }
    } catch (error) {
      said.push({ error: error.message });
    }
  }
  return said;
}

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  let said;
  try {
    if (asked.lines) said = answered(asked.lines);
    else {
      logged.length = 0;
      await import(`data:text/javascript,${encodeURIComponent(asked.module)}`);
      said = JSON.parse(logged.join("\n"));
    }
    process.stdout.write(`${JSON.stringify({ said })}\n`);
  } catch (error) {
    process.stdout.write(`${JSON.stringify({ failed: error.stack })}\n`);
  }
}
